"""Pieces of text that meet each other badly: random texts with markup are strung together from them."""

PROSE = ["a", "word", "Hello", "It is", "你好", "重要", "é", "5", "3.14", " ", " ", "  ", "\n", "\n\n", "\r\n", "\t", "\u00a0"]
SIGNS = [".", "!", "?", ",", "。", "，", "：", "(", ")", "/", "\"", "'", "+", "=", "-", "©", "│", "─", "•", "、", "%", "&", "#"]
EMPHASIS = ["*", "**", "***", "_", "__", "~~", "x**2", "2*3", "snake_case", "********"]
BLOCKS = ["# ", "## ", "- ", "* ", "1. ", "12)", "> ", "|", "| a | b |\n", "|---|\n", "---\n", "===\n", "[x] ", "1、", "(1)"]
CODE = ["`", "``", "```", "```py\n", "\n```\n", "~~~", "\\", "\\*", "\\[", "\\]"]
LINKS = ["[", "]", "](http://x.y)", "![", "[docs](", "[1]", "[^1]", "【3†source】", "【", "http://", "https://example.com/a_b", "www."]
LINKS += ["[id]: http://x\n", "[^n]: note\n", "ht", "w", "\ue200", "\ue201", "http://a.b/" + "c/" * 40]
HTML = ["<", ">", "</", "<b>", "</b>", "<br>", "<li>", "<h1>", "</h1>", "<!--", "-->", "<chuckle>", "&amp;", "&lt;", "&#42;", "<3"]
HIDDEN = ["<think>", "</think>", "<tool_call>", "</tool_call>", "<function=f>", "<script>", "[TOOL_CALLS]", "◁think▷", "◁/think▷"]
HIDDEN += ["{", "}", '{"name": "x"', ', "arguments": {}', "<|im_end|>", "<|channel|>analysis", "<|", "|>", "<|start|>assistant"]
EMOJI = ["😊", "👨\u200d👩\u200d👧", "👍🏽", "1\ufe0f\u20e3", "🇨🇳", "\ufe0f", "\u20e3", "\u200d", "\u200b", "\x00", "\ud83d", "\ufdd0"]
TAGS = ["[break_300]", "[speed_0.8]", "[pitch_+2]", "[volume_0.5]", "[pause:1.5s]", "[uv_break]", "[laugh]", "[mood_3]", "[SPEED_2]"]
TAGS += ['<break time="300ms"/>', '<prosody rate="90%">', "</prosody>", "<speak>", '<expr type="break" label="1s"/>', "[speed_fast]"]
BROKEN_TAGS = ["[speed", "_0", "[break_", "<break ", '<prosody rate="', "ms]", "[break_300](", "［speed_0.9］"]

MARKUP = PROSE + SIGNS + EMPHASIS + BLOCKS + CODE + LINKS + HTML + HIDDEN + EMOJI + TAGS + BROKEN_TAGS
WITHOUT_ESCAPE = PROSE + SIGNS + EMPHASIS + BLOCKS + EMOJI + ["[", "]", "<", ">", "(", ")"]
"""Nothing here makes text of a tag, and none of it holds the beginning of one."""
