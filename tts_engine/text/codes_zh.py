"""Chinese readings of numbers that are names: phones, codes, rooms, lines, trains, addresses of machines, versions."""

from __future__ import annotations

import re

from tts_engine.text.numbers_zh import cardinal, digits
from tts_engine.text.written_zh import Part, Written, counted

DOTTED = re.compile(r"\d+(?:\.\d+){2,9}(?!\.\d)(?::\d{1,5}(?!\d))?(?:/\d{1,2}(?!\d))?")
PHONE = re.compile(
    r"(?:\+\d{1,3}[- ]?\(?\d{1,4}\)?(?:[- ]?\d{2,5}){1,4}"
    r"|(?:86[- ])?1[3-9]\d(?:[- ]?\d{4}){2}"
    r"|[48]00[- ]?(?:\d{3}[- ]?\d{4}|\d{4}[- ]?\d{3})"
    r"|0\d{2,3}[- ]?\d{7,8}(?:-\d{1,6})?"
    r"|0\d{2,3}[- ]\d{3,4}[- ]\d{4})(?![\d-]|\.\d)"
)
QUANTITY_AFTER = re.compile(
    r"\s?(?:元|块|万|亿|人|个|美元|吨|公里|千米|米|次|年|天|户|台|辆|件|%|家|股|字|分(?!机)|岁|℃|度|厘米|毫[米升克]|秒)"
)
EMERGENCY = re.compile(r"(?:110|112|114|119|120|122|911|999)(?![\d.,:/%-])")
SERVICE = re.compile(r"(?:12[13]\d{2}|100(?:0\d|1\d|50|8[56])|95\d{3}|96\d{3})(?![\d.,:/%-])")
KNOWN_SERVICE = re.compile(
    r"12(?:306|315|318|320|328|329|331|333|348|355|358|366|369|388)|100(?:0[01]|1[0-2]|50|8[56])|955\d{2}"
)
CALL_BEFORE = re.compile(
    r"(?:打|拨打?|拨通|致电|呼叫|电话|热线|报警|急救|火警|匪警|求助|联系|号码|客服|服务台|救护车"
    r"|叫)(?:[是为：:了请个\s\"“”‘’]|一下|号码|电话|客服|热线)*$"
)
CALL_AFTER = re.compile(
    r"[\"”’]?(?:报警|火警|急救|匪警|热线|电话|指挥中心|救护|出警|消防|平台|客服|服务热线|专线|短号|查[询号])"
)
PHONE_BEFORE = re.compile(
    r"(?:电话|手机|热线|传真|客服|座机|致电|拨打|来电|拨|短信发?[到至]|总机|分机|(?:^|[\d\s（(]|请)转|联系方式|号码|短号"
    r"|小灵通|tel|TEL|Tel|phone)"
    r"(?:号码?|[是为：:请拨打致电转（(“”\"\s+-]|分机|客服|热线|服务|专线|咨询|联系|电话|手机|一下|方式)*$"
)
CODE_BEFORE = re.compile(
    r"(?:密码|口令|验证码|校验码|识别码|取[件货票餐]码|提[取货]码|邀请码|激活码|兑换码|优惠码|动态码"
    r"|安全码|确认码|条形?码|编码|代码|编号|单号|账号|帐号|卡号|工号|学号|尾号|票号|证号"
    r"|序列号|序号|批号|流水号|订单号?|快递单|运单|身份证|邮编|邮政编码|QQ|qq|群号|微信|型号|PIN|pin|ID"
    r"|OTP|otp|代号|会议号|会议ID|案号|考号|准考证|牌照号|文号|股票代码|区号|房号|门牌号?|座位号|航班号"
    r"|车次"
    r"|车牌号?|车牌|牌照|房间号?|病房|宿舍|教室|会议室|护照)"
    r"(?:号码?|后[四六4-6]位|尾[数号]|[是为：:（(“”\"‘’\s]|分别|应该|依次|就|改成|改为|变成|设[成为置]+"
    r"|一[个串])*[A-Za-z0-9-]{0,12}$"
)
PLACE_BEFORE = re.compile(r"(?:房间|病房|宿舍|教室|会议室|序列|区号)\s*$")
YAO_BEFORE = re.compile(r"(?:房间?号?|门牌号?|航班号?|车次|车牌号?|牌照号?|病房|宿舍|教室|会议室|区号)[^，。]{0,8}$")
PLATE_BEFORE = re.compile(r"[京津沪渝冀豫云辽黑湘皖鲁新苏浙赣鄂桂甘晋蒙陕吉闽贵粤青藏川宁琼港澳][A-Z][·\s-]?[A-Z0-9]{0,5}$")
ROOM = re.compile(r"(\d{3,5})(?=\s?(?:室|房(?![价子屋东地产])|号?病房|教室|会议室|宿舍|号?包[间厢]|号房|寝室|办公室))")
UNIT_DOOR = re.compile(r"(\d{3,4})(?=号?(?:$|[，。！？,.!?]))")
BUS = re.compile(r"(\d{3})(?=路(?![程途人口数]))")
TRAIN = re.compile(
    r"(\d{1,5})(?=(?:/\d{1,4})?次(?:列车|高铁|动车|航班|城际|车|快车|特快|直达|航线)|(?:号|次)?航班"
    r"|号?(?:列车|高铁|动车))"
)
TRAIN_RUN = re.compile(r"\d{2,4}(?=次)")
RUN_LETTER = re.compile(r"(?<![A-Za-z])[GDCKTZ]$")
TRAIN_LETTER = re.compile(r"(?<![A-Za-z])(?:[GDCKTZYSL]|[A-Z][A-Z\d])\s?$")
TRAVEL_BEFORE = re.compile(
    r"(?:乘|坐|搭|列车|高铁|动车|火车|航班|飞机|车次|检票|改签|班机)[^，。\d]{0,8}(?:[GDCKTZYSL]|[A-Z][A-Z\d])\s?$"
)
GROUPS = re.compile(r"\d+(?:-\d+){2,9}(?![-\d])")
TWO_GROUPS = re.compile(r"\d{3,4}-\d{6,8}(?![-\d])|\d{2}-\d{8}(?!\d)")
RESOLUTION = re.compile(r"(?:360|480|540|720|1080|1440|2160)(?=[PpiI](?![A-Za-z]))")
EVENT = re.compile(
    r"\d{1,2}·\d{1,2}(?!\d)|\d{3}(?=大促|购物节|年中|事件|恐怖|慰安妇|工作制|部队)|(?:3\.15|315)(?=晚会|打假|维权)"
    r"|(?:985|211)(?=高校|大学|院校|工程|名校)|(?:520|1314)(?=快乐|表白|情人|礼物|约会)"
)
DOUBLE_WEEK = re.compile(r"24/7(?!\d)")
LETTERS_BEFORE = re.compile(r"[A-Za-z](?<!\dh)(?<!\dmin)([ -]?)$")
WHOLE = re.compile(r"\d+(?![\d,]|\.\d|[:/])")
CALLED = re.compile(r"\d+(?:[- ]\d+){0,9}(?![\d.%:/])")
CODE = re.compile(r"\d+(?:-\d+){0,9}(?![\d.%:/])")
LONG = re.compile(r"\d{13,}(?![\d,]|\.\d)")
ZERO_FIRST = re.compile(r"0\d+(?!\d|\.\d|[月日号点时分秒])")
DOOR_BEFORE = re.compile(r"(?:单元|栋|号楼|座|幢)\s?$")


def read(written: Written, start: int) -> list[Part] | None:
    """The reading of a number that names something, or None. ``start``: a digit, or the ``+`` of a phone number."""
    text, context = written.text, written.context
    left = written.before(start)
    if match := DOUBLE_WEEK.match(text, start):
        return [Part("七乘二十四小时", start, match.end())]
    if match := PHONE.match(text, start):
        plain = match[0].isdigit()
        if not (plain and QUANTITY_AFTER.match(context, match.end())) and not CODE_BEFORE.search(left):
            return _grouped(match[0], start, yao=True)
    if text[start] == "+":
        return None
    if match := DOTTED.match(text, start):
        return _dotted(match[0], start)
    if match := EVENT.match(context, start):
        return [Part(digits(re.sub(r"\D", "", match[0])), start, match.end())]
    if match := RESOLUTION.match(text, start):
        return [Part(digits(match[0]), start, match.end())]
    return _called(written, start, left) or _coded(written, start, left) or _placed(written, start, left)


def _grouped(number: str, start: int, *, yao: bool) -> list[Part]:
    """Digits one by one, each group with its own span."""
    return [
        Part(("加" if match[0] == "+" else digits(match[0], yao=yao)), start + match.start(), start + match.end())
        for match in re.finditer(r"\d+[^\d+]*|\+", number)
    ]


def _dotted(number: str, start: int) -> list[Part]:
    """An IP address with port and mask, or a version: digits, with 点 between the fields."""
    parts: list[Part] = []
    names = {".": "点", ":": "冒号", "/": "斜杠"}
    for match in re.finditer(r"([.:/]?)(\d+)", number):
        spoken = names.get(match[1], "") + digits(match[2])
        parts.append(Part(spoken, start + match.start(), start + match.end()))
    return parts


def _called(written: Written, start: int, left: str) -> list[Part] | None:
    """Emergency and service numbers, and whatever follows a word for a phone."""
    context = written.context
    if match := EMERGENCY.match(written.text, start):
        called = CALL_BEFORE.search(left) and not _measured(written, start, match.end())
        if called or CALL_AFTER.match(context, match.end()):
            return [Part(digits(match[0], yao=True), start, match.end())]
    match = None if CODE_BEFORE.search(left) else SERVICE.match(written.text, start)
    if match and not _measured(written, start, match.end()):
        announced = CALL_BEFORE.search(left) or PHONE_BEFORE.search(left) or CALL_AFTER.match(context, match.end())
        if announced or KNOWN_SERVICE.match(match[0]):
            return [Part(digits(match[0], yao=True), start, match.end())]
    if PHONE_BEFORE.search(left):
        match = CALLED.match(written.text, start)
        size = len(re.sub(r"\D", "", match[0])) if match else 0
        least = 7 if left.endswith(("手机", "座机", "传真", "小灵通")) else 3
        if match and size >= least and not _measured(written, start, match.end()):
            return _grouped(match[0], start, yao=True)
    return None


def _measured(written: Written, start: int, end: int) -> bool:
    """Whether what follows makes it a quantity."""
    return bool(QUANTITY_AFTER.match(written.context, end)) or counted(written, start, end)


def _coded(written: Written, start: int, left: str) -> list[Part] | None:
    """Codes after a word that announces them, number plates, and long or hyphenated strings of digits."""
    match = CODE.match(written.text, start)
    if match and CODE_BEFORE.search(left):
        short = len(match[0]) <= 2 and not match[0].startswith("0")
        place = PLACE_BEFORE.search(left) and QUANTITY_AFTER.match(written.context, match.end())
        if not short and not place:
            return _grouped(match[0], start, yao=bool(YAO_BEFORE.search(left)))
    if match and PLATE_BEFORE.search(left):
        return _grouped(match[0], start, yao=True)
    if match := GROUPS.match(written.text, start):
        size = len(re.sub(r"\D", "", match[0]))
        return _grouped(match[0], start, yao=7 <= size <= 12)
    if (match := TWO_GROUPS.match(written.text, start)) and not _measured(written, start, match.end()):
        return _grouped(match[0], start, yao=True)
    if (match := LONG.match(written.text, start)) and not _measured(written, start, match.end()):
        return [Part(digits(match[0]), start, match.end())]
    if match := ZERO_FIRST.match(written.text, start):
        return [Part(digits(match[0]), start, match.end())]
    return None


def _placed(written: Written, start: int, left: str) -> list[Part] | None:
    """Rooms, bus lines, trains and flights by what follows; names such as A4, H100, COVID-19 by the letters before."""
    context = written.context
    for pattern in (ROOM, BUS):
        if (match := pattern.match(context, start)) and not left.endswith(("第", "共", "有")):
            return [Part(digits(match[1], yao=True), start, match.end())]
    if DOOR_BEFORE.search(left) and (match := UNIT_DOOR.match(context, start)):
        return [Part(digits(match[1], yao=True), start, match.end(1))]
    match = TRAIN.match(context, start)
    if match and (TRAIN_LETTER.search(left) or len(match[1]) >= 4):
        return [Part(digits(match[1], yao=True), start, match.end(1))]
    if RUN_LETTER.search(left) and (match := TRAIN_RUN.match(context, start)):
        return [Part(digits(match[0], yao=True), start, match.end())]
    whole = WHOLE.match(written.text, start)
    if not whole:
        return None
    if TRAVEL_BEFORE.search(left):
        return [Part(digits(whole[0], yao=True), start, whole.end())]
    if letters := LETTERS_BEFORE.search(left):
        if letters[1] == " " and _measured(written, start, whole.end()):
            return None
        return [Part(_model(whole[0], left), start, whole.end())]
    return None


def _model(number: str, left: str) -> str:
    """A number in a name: up to two digits and round hundreds as a quantity, others digit by digit."""
    quantity = len(number) <= 2 and not number.startswith("0") and not left.endswith("x")
    return cardinal(number) if quantity or (len(number) == 3 and number.endswith("00")) else digits(number)
