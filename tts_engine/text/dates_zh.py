"""Chinese readings of dates, years and times of day."""

from __future__ import annotations

import re

from tts_engine.text.numbers_zh import cardinal, digits
from tts_engine.text.written_zh import Part, Written

YEAR_FIRST = re.compile(r"([12]\d{3})([-/.])(\d{1,2})\2(\d{1,2})(?!\d)日?")
YEAR_LAST = re.compile(r"(\d{1,2})/(\d{1,2})/([12]\d{3})(?!\d)")
YEAR_MONTH = re.compile(r"((?:19|20)\d{2})[-/](0[1-9]|1[0-2]|[1-9](?=月))(?![\d年/-])月?")
YEARS = re.compile(r"(\d{4})\s*[-~—到至]\s*(\d{4}|\d{2})(?=年(?!前|后)|学年|赛季|财年)")
YEAR = re.compile(r"(\d{4})(?=年|学年|赛季|财年|年代)")
COUNTED_YEARS = re.compile(r"年\s*(?:前|后|来|间|以|之|的?(?:历史|文明|岁月|时间|寿命)|历史|文明)")
SPAN_BEFORE = re.compile(r"(?:[了近约达]|距今|整整|超过|不到)\s*$")
NAMED_YEAR = re.compile(
    r"((?:19|20)\d{2})(?=\s?.{0,4}(?:奥运|世界杯|欧洲杯|亚运)|\s?(?:届|级|款|版|奥运|世界杯|欧洲杯|亚运"
    r"|财报|春|夏|秋|冬|新年|跨年|元旦|高考|应届))"
)
SHORT_YEAR = re.compile(
    r"(0\d|[4-9]\d)(?=年(?:\d{1,2}月|出生|生人|生的|毕业|入学|高考|参军|[的]?[春夏秋冬]|[初底末]|版|款|奥运|世界杯))"
)
ZERO_YEAR = re.compile(r"0\d(?=年|级|届|后)")
GENERATION = re.compile(r"(\d[05])(?=后(?![面来天续期年退方者果半台备悔卫续再就]))")
BORN = re.compile(r"(?:生于|出生于|成立于|创立于|创建于|建于|始于|始建于|卒于|死于|公元前?|©|版权所有|自从?|since)\s*$")
BORN_YEAR = re.compile(r"[12]\d{3}(?![\d.,]|多|余|[个人块元])")
ERA = re.compile(r"公元前?\s*$")
ERA_YEAR = re.compile(r"\d{2,3}[1-9](?=年)|\d{2}[1-9]0(?=年)")

CLOCK = re.compile(r"(\d{1,2}):(\d{2})(?::(\d{2}))?(?:\.\d+)?(?![\d:])")
HALF_DAY = re.compile(r"\s?([AaPp])\.?[Mm](?:\.(?!\w))?(?![A-Za-z])")
SPELLED_CLOCK = re.compile(r"(\d{1,2})(点|时)(\d{2})(?!\d|[.:%]|人|个|块)")
RATIO = re.compile(r"\d+(?:\.\d+)?(?:\s?:\s?\d+(?:\.\d+)?){1,7}(?![:\d])")
RATIO_BEFORE = re.compile(
    r"(?:比分|比例|比率|比值|赔率|配比|总分|战平|打平|领先|落后|击败|战胜|大胜|险胜|完胜|负于|不敌|横扫|汇率)"
    r"[^\d，。后在于将]{0,6}$"
)
RATIO_AFTER = re.compile(
    r"\s?(?:领先|落后|战胜|击败|大胜|险胜|完胜|小胜|获胜|取胜|完败|惜败|战平|打平|不敌|逆转|横扫|淘汰"
    r"|的?比[分例率]|稀释|混合|调配|配[比制]|兑(?!换|现|付)|画幅|屏幕|显示器)"
)
DURATION_BEFORE = re.compile(r"(?:用时|耗时|时长|成绩|计时|片长|播放|历时|跑进|跑出|配速)[^\d，。]{0,4}$")
JOIN = re.compile(r"\s*[-~—至到]+\s*")


def read(written: Written, start: int) -> list[Part] | None:
    """The reading of a date or a time that begins with a digit at ``start``, or None."""
    return _date(written, start) or _year(written, start) or _clock(written, start) or _ratio(written, start)


def _valid(month: str, day: str) -> bool:
    return 1 <= int(month) <= 12 and 1 <= int(day) <= 31


def _date(written: Written, start: int) -> list[Part] | None:
    text = written.text
    if match := YEAR_FIRST.match(text, start):
        year, _, month, day = match.groups()
        if _valid(month, day):
            end = match.end()
            if text[end : end + 1] == "T" and CLOCK.match(text, end + 1):
                end += 1
            return [
                Part(digits(year) + "年", start, match.start(3)),
                Part(cardinal(month) + "月", match.start(3), match.start(4)),
                Part(cardinal(day) + "日", match.start(4), end),
            ]
    if match := YEAR_LAST.match(text, start):
        month, day, year = match.groups()
        if int(month) > 12:
            month, day = day, month
        if _valid(month, day):
            return [Part(f"{digits(year)}年{cardinal(month)}月{cardinal(day)}日", start, match.end())]
    if match := YEAR_MONTH.match(text, start):
        year, month = match.groups()
        return [
            Part(digits(year) + "年", start, match.start(2)),
            Part(cardinal(month) + "月", match.start(2), match.end()),
        ]
    return None


def _year(written: Written, start: int) -> list[Part] | None:
    context, left = written.context, written.before(start)
    if match := YEARS.match(context, start):
        return [
            Part(digits(match[1]), start, match.end(1)),
            Part("到", match.end(1), match.start(2)),
            Part(digits(match[2]), match.start(2), match.end(2)),
        ]
    for pattern in (NAMED_YEAR, SHORT_YEAR, ZERO_YEAR, GENERATION):
        if match := pattern.match(context, start):
            return [Part(digits(match[0]), start, match.end())]
    if (match := YEAR.match(context, start)) and not _span_of_years(match[1], left, written.after(match.end())):
        return [Part(digits(match[1]), start, match.end())]
    if ERA.search(left) and (match := ERA_YEAR.match(context, start)):
        return [Part(digits(match[0]), start, match.end())]
    if BORN.search(left) and (match := BORN_YEAR.match(context, start)):
        return [Part(digits(match[0]), start, match.end())]
    return None


def _span_of_years(figures: str, left: str, right: str) -> bool:
    """Whether four figures before 年 count years: round numbers, where nothing says that they are a date."""
    if not figures.endswith("00") or figures in ("1900", "2000") or ERA.search(left):
        return False
    if figures.endswith("000") or figures[0] not in "12":
        return True
    return bool(COUNTED_YEARS.match(right) or SPAN_BEFORE.search(left))


def _hour(hour: str) -> str:
    return cardinal(hour, liang=True) + "点"


def _minute(minute: str) -> str:
    return ("零" if minute[0] == "0" else "") + cardinal(minute)


def _clock(written: Written, start: int) -> list[Part] | None:
    text = written.text
    if match := SPELLED_CLOCK.match(written.context, start):
        hour, unit, minute = match.groups()
        if int(hour) <= 24 and int(minute) < 60:
            spoken = cardinal(hour, liang=unit == "点")
            return [Part(spoken + unit, start, match.start(3)), Part(_minute(minute), match.start(3), match.end())]
    match = CLOCK.match(text, start)
    if not match or int(match[1]) > 24 or int(match[2]) > 59 or int(match[3] or 0) > 59:
        return None
    left = written.before(start)
    if RATIO_BEFORE.search(left) or RATIO_AFTER.match(written.context, match.end()):
        return None
    hour, minute, second = match.groups()
    if DURATION_BEFORE.search(left):
        names = ("分", "秒") if second is None else ("小时", "分", "秒")
        values = [value for value in (hour, minute, second) if value is not None]
        spoken = "".join(cardinal(value, liang=True) + name for value, name in zip(values, names, strict=True) if int(value))
        return [Part(spoken or "零秒", start, match.end(3 if second else 2))]
    end = match.end(3 if second else 2)
    spoken = _hour(hour)
    if second is not None:
        spoken += f"{_minute(minute)}分{_minute(second)}秒"
    elif minute == "30" and int(hour) <= 12:
        spoken += "半"
    elif minute != "00":
        spoken += _minute(minute) + "分"
    if half := HALF_DAY.match(text, end):
        end = half.end()
        spoken = ("上午" if half[1] in "Aa" else "下午") + spoken
    parts = [Part(spoken, start, end)]
    if (joint := JOIN.match(text, end)) and CLOCK.match(text, joint.end()):
        rest = _clock(written, joint.end())
        if rest:
            parts += [Part("到", end, joint.end()), *rest]
    return parts


def _ratio(written: Written, start: int) -> list[Part] | None:
    match = RATIO.match(written.text, start)
    if not match:
        return None
    parts: list[Part] = []
    place = start
    for value in re.finditer(r"\d+(?:\.\d+)?", match[0]):
        low, high = start + value.start(), start + value.end()
        if parts:
            parts.append(Part("比", place, low))
        whole, point, fraction = value[0].partition(".")
        parts.append(Part(cardinal(whole) + ("点" + digits(fraction) if point else ""), low, high))
        place = high
    return parts
