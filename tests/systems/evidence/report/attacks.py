"""What a report or a source might say to be more than text."""

ATTACKS = {
    "script": "<script>alert(1)</script>",
    "image in HTML": "<img src=x onerror=alert(1)>",
    "end of an attribute": '" onmouseover="alert(1)" x=\'',
    "end of a cell": "a | b |\n| c | d |",
    "image": "![x](https://beacon.example/x.png)",
    "link": "[x](https://evil.example) <https://evil.example>",
    "plain address": "see https://evil.example and www.evil.example, a@evil.example",
    "script as a link": "[x](javascript:alert(1))",
    "hidden script as an address": " \x01java\tscript:alert(1)",
    "heading": "# a\n\n## b",
    "turned around": "a\u202egnp.exe\u2066 b",
    "unseen": "4\u200b2\ufeff\u2060\U000e0041",
    "commands to a terminal": "\x1b[31mred\x1b]0;title\x07\x1b]52;c;eA==\x07\x9b2J",
    "markup of rich": "[bold red]x[/] [link=https://evil.example]y[/link]",
    "other lines": "a\u2028b\u2029c\x0bd\x85e\r\nf",
    "emphasis": "**a** _b_ ~~c~~ $d$",
}
