"""Who speaks in the ears' recordings, and what. Two casts, ``tuning`` and ``evaluation``, share no user's voice and no text,
so that thresholds are not set on what they are judged by.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["EVALUATION", "TUNING", "Cast", "Saying", "Voice"]

Voice = tuple[str, str]
"""The program that speaks, and its name for the voice."""


@dataclass(frozen=True)
class Saying:
    """What a user says: clauses, and how long they pause behind each but the last. ``said`` is a recogniser's spelling."""

    clauses: tuple[str, ...]
    pauses_s: tuple[float, ...] = ()
    language: str = "en"


@dataclass(frozen=True)
class Cast:
    """Voices by language, and what they say."""

    voices: dict[str, tuple[Voice, ...]]
    crowd: tuple[Voice, ...]
    turns: tuple[Saying, ...]
    interruptions: tuple[Saying, ...]
    backchannels: tuple[Saying, ...]
    seed: int


def _sayings(language: str, *texts: str) -> tuple[Saying, ...]:
    """Sayings from texts; ``|0.6|`` is a pause."""
    made = []
    for text in texts:
        parts = text.split("|")
        made.append(Saying(tuple(p.strip() for p in parts[::2]), tuple(float(p) for p in parts[1::2]), language))
    return tuple(made)


def _espeak(*names: str) -> tuple[Voice, ...]:
    return tuple(("espeak-ng", name) for name in names)


TUNING = Cast(
    voices={
        "en": (
            ("flite", "slt"),
            ("flite", "kal16"),
            *_espeak("en-us", "en-gb+f2", "en-gb-x-rp+m4", "en-us+m8", "en-029+Annie", "en-gb+klatt2"),
        ),
        "zh": _espeak("cmn", "cmn+f5", "cmn+m4", "cmn+Annie"),
    },
    crowd=(("flite", "slt"), *_espeak("en-us+m5", "en-us+f1", "cmn+m1")),
    turns=(
        *_sayings(
            "en",
            "What is the weather like today?",
            "I would like to book a table for two at seven.",
            "Please play some jazz.",
            "Yes.",
            "I need a taxi to the airport, |0.35| and it should come at nine.",
            "I wanted to ask about my order, because |0.7| it has not arrived yet.",
            "My number is five five five, |0.6| one two three four.",
            "If it rains tomorrow, |0.45| can we move the meeting to Friday?",
            "How long does it take?",
            "Where can I find a good restaurant near the station?",
            "Remind me to call my sister tomorrow morning.",
            "Turn off the lights in the kitchen.",
            "No.",
            "That sounds great.",
            "I have two suitcases, |0.4| and one of them is very heavy.",
            "We could meet on Monday, but |0.8| I have to ask my manager first.",
            "The code is seven zero four, |0.6| nine nine two.",
            "When you have finished with that, |0.5| could you send me a summary?",
            "I am looking for |0.7| a present for my father.",
            "Is there anything else I should know?",
            "The thing is |0.6| I already paid for it.",
            "I think we need |0.5| three chairs and a table.",
            "It was the blue one, |0.4| no, the green one.",
            "Send it to my office |0.5| on Thursday.",
            "So I went to the shop yesterday |0.7| and they told me to call you.",
            "Can you tell me |0.6| when the next train leaves?",
            "I bought it in March |0.8| or maybe in April.",
            "Because the last bill was wrong, |0.6| I did not pay it.",
            "My name is Carter.",
            "Cancel the order.",
        ),
        *_sayings(
            "zh",
            "今天天气怎么样？",
            "我想订一张去上海的票。",
            "我想问一下，因为 |0.7| 我的包裹还没有到。",
            "我的电话是一三八，|0.6| 五五六六。",
            "好的。",
            "附近有没有好吃的饭馆？",
            "请把客厅的灯关掉。",
            "我本来想明天去，但是 |0.8| 我的朋友没有时间。",
            "验证码是七零四，|0.6| 九九二。",
            "如果明天下雨，|0.5| 我们就改到星期五。",
            "不是。",
            "谢谢你的帮助。",
            "我觉得那个 |0.6| 蓝色的比较好看。",
            "昨天我去了商店 |0.7| 他们让我给你打电话。",
            "等我到家以后 |0.5| 再打开空调。",
            "帮我查一下 |0.6| 明天的航班。",
        ),
    ),
    interruptions=(
        *_sayings(
            "en",
            "Wait, that is not what I asked for.",
            "No, I meant the other one, please.",
            "Can you say that again more slowly?",
            "Hold on, I have a question about the price.",
            "Stop, I have heard enough of this.",
            "Hang on, you are talking about the wrong account.",
            "Sorry, could you go back to the first option?",
            "Excuse me, how much does that cost?",
            "Actually, I would rather do it tomorrow.",
            "That is enough, thank you, tell me about the second one.",
            "But I already told you my address.",
        ),
        *_sayings(
            "zh",
            "等一下，我不是这个意思。",
            "不对，我说的是另外一个。",
            "你能再说一遍吗？",
            "停一下，这个我已经知道了。",
            "请问这个多少钱？",
            "不用了，你告诉我明天的安排。",
        ),
    ),
    backchannels=(
        *_sayings("en", "Uh-huh.", "Yeah.", "Okay.", "Right.", "Mm.", "Yes.", "I see.", "Mm-hmm.", "Sure.", "Yeah, right."),
        *_sayings("zh", "嗯。", "对。", "好的。", "是的。", "对对对。", "好。"),
    ),
    seed=1,
)

EVALUATION = Cast(
    voices={
        "en": (
            ("flite", "rms"),
            ("flite", "awb"),
            *_espeak(
                "en-gb-scotland+m3",
                "en-us+f4",
                "en-us-nyc+m6",
                "en-gb-x-gbclan+f3",
                "en-gb-x-gbcwmd+Michael",
                "en-us+belinda",
                "en-029+m2",
                "en-gb-x-rp+Alicia",
            ),
        ),
        "zh": _espeak("cmn+m2", "cmn+f3", "cmn+m7", "cmn+linda", "cmn+Andy"),
    },
    crowd=(("flite", "rms"), *_espeak("en-gb+m7", "en-029+f2", "cmn+f1")),
    turns=(
        *_sayings(
            "en",
            "Which platform does the express leave from?",
            "Wake me up at half past six.",
            "I lost my credit card this morning.",
            "Maybe later.",
            "Add milk and two lemons to the shopping list.",
            "Is the swimming pool open on public holidays?",
            "Translate this letter into French.",
            "Not really.",
            "My daughter starts school in September.",
            "Could you make it a little warmer in here?",
            "The printer on the second floor is broken again.",
            "Who won the match last night?",
            "Read me the last message from Helen.",
            "I will take the cheaper one.",
            "How do I get to the castle by bus?",
            "That was everything, thanks.",
            "Set a timer for twelve minutes.",
            "It starts with a capital letter.",
            "Do you deliver to Ireland as well?",
            "Perhaps we should wait until spring.",
            "I was wondering whether |0.7| you could lend me the car.",
            "We need flour, |0.5| eggs, |0.5| and a bar of chocolate.",
            "The reservation is under Miller, |0.6| for four people.",
            "Unless the weather gets better, |0.5| we will stay at home.",
            "My account number is two nine one, |0.6| six six oh.",
            "Yesterday I tried to log in |0.6| but the page did not load.",
            "What I really want is |0.8| a room with a view of the sea.",
            "Please tell my brother that |0.7| the keys are under the mat.",
            "He said it would take, um, |0.7| about three weeks.",
            "After the concert |0.5| we walked along the river.",
            "There are two problems. |0.6| The first is the price.",
            "I have never been to Norway, |0.4| so I do not know what to pack.",
            "Could you compare |0.6| the two phones that I sent you?",
            "Our flight was delayed, which means |0.8| that we missed the connection.",
            "The address is fourteen |0.5| Garden Street.",
            "I would like to change |0.6| my password.",
            "As soon as the parcel arrives, |0.5| let me know.",
            "It is either the battery or |0.8| the cable.",
            "Let me think. |0.9| Make it Saturday.",
            "On the left side of the |0.6| garage there is a switch.",
        ),
        *_sayings(
            "zh",
            "你们几点开门？",
            "明天早上六点半叫我起床。",
            "我的信用卡丢了。",
            "不太清楚。",
            "这个周末有什么好看的电影？",
            "把这封信翻译成英文。",
            "空调太冷了。",
            "北京到广州坐高铁要多长时间？",
            "可以用手机付款吗？",
            "我下个月要搬家。",
            "提醒我给妈妈打电话。",
            "还是算了吧。",
            "我打算下周去成都，|0.5| 你能帮我看看酒店吗？",
            "虽然价格有点贵，|0.6| 不过质量很好。",
            "我想知道 |0.7| 这个月的账单是多少。",
            "账号是六二二，|0.6| 八四零。",
            "除了星期三，|0.5| 我每天都有空。",
            "他告诉我说 |0.7| 会议取消了。",
            "麻烦你帮我把 |0.6| 窗户关上。",
            "我们一共有五个人，|0.4| 其中两个是孩子。",
            "要是来不及的话，|0.6| 我们就坐出租车。",
            "让我想一想。|0.9| 那就星期六吧。",
            "我昨天买的那双鞋 |0.6| 尺码不对。",
            "地址是中山路 |0.5| 十八号。",
        ),
    ),
    interruptions=(
        *_sayings(
            "en",
            "Hey, that cannot be the right date.",
            "Just a second, which street was that?",
            "Please skip this part and go on.",
            "What about the return trip?",
            "I never ordered any of that.",
            "You can stop reading now.",
            "Let us talk about something else.",
            "Does that include breakfast?",
            "Forget it, I will call them myself.",
            "One moment, my phone is ringing.",
            "Go back, I did not understand that.",
            "Why is it so expensive?",
        ),
        *_sayings(
            "zh",
            "先别说了，我有个问题。",
            "这个不是我要的。",
            "能不能说慢一点？",
            "换一个话题吧。",
            "那星期天怎么样？",
            "你刚才说的是几号？",
        ),
    ),
    backchannels=(
        *_sayings(
            "en", "Uh-huh.", "Yep.", "Got it.", "Oh, okay.", "Exactly.", "Mm-hmm, yeah.", "Of course.", "Great.", "All right."
        ),
        *_sayings("zh", "嗯嗯。", "是啊。", "知道了。", "哦。", "没错。", "好吧。"),
    ),
    seed=2,
)
