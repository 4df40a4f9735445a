"""What a browser without scripts shows of a page is read, and nothing else: a table of tricks, checked against Chromium."""

from __future__ import annotations

import io
import shutil

import pytest

from nlp_retrieval.errors import SourceError
from nlp_retrieval.systems.evidence.reading.text_of import read_bytes

TEXT = "SECRETWORDS are written here."
OTHER = "SECRETXXXXX xxx xxxxxxx xxxx."

HIDING_STYLES = """
display:none
display:none;display:
display:none;display:bogus
display:none;display:block 5px
display:block;display:none
display:none !important;display:block
display: NONE
d\\69splay:none
display:none;;
;display:none
visibility:hidden
visibility:collapse
visibility:hidden;visibility:foo
opacity:0
opacity:1e-9
opacity:0%
opacity:.01
opacity:calc(0)
opacity:calc(1 - 1)
opacity:-1
opacity:0;opacity:red
filter:opacity(0)
filter:opacity(0%)
filter:opacity(.5) opacity(.02)
-webkit-filter:opacity(0)
filter:blur(40px)
scale:0
scale:0 1
scale:0%
scale:.01
transform:scale(0)
transform:scale(.001)
transform:scaleX(0)
transform:scale(1,0)
transform:scale3d(0,0,0)
transform:matrix(0,0,0,0,0,0)
transform:rotateX(90deg)
transform:rotateY(90deg)
transform:rotate3d(1,0,0,90deg)
transform:rotateY(.25turn)
rotate:x 90deg
rotate:0 1 0 90deg
transform:rotateY(180deg);backface-visibility:hidden
transform:translateX(-9999px)
transform:translate(-9999px,0)
transform:translate3d(0,-9999px,0)
translate:-9999px
translate:0 -9999px
position:absolute;left:-9999px
position:absolute;top:-9999px
position:fixed;left:-100vw;top:-100vh
position:absolute;right:9999px
position:absolute;bottom:9999px
position:absolute;inset:0 auto auto -9999px
position:absolute;inset-inline-start:-9999px
position:relative;left:-9999px
position:absolute;left:calc(-1px * 9999)
position:absolute;left:-600em
margin-left:-9999px
margin:-9999px
margin-inline-start:-9999px
text-indent:-9999px
text-indent:-999em
text-indent:120%;white-space:nowrap;overflow:hidden
font-size:0
font-size:0px
font-size:1px
font-size:.01em
font-size:calc(1px - 1px)
font-size:0%
font:0/0 a
font:0px serif
font:italic bold 1px/1 serif
zoom:.01
zoom:1%
clip-path:inset(100%)
clip-path:inset(50%)
clip-path:inset(0 100% 0 0)
clip-path:inset(60% 0 40% 0)
clip-path:circle(0)
clip-path:circle(0 at 50% 50%)
clip-path:ellipse(0 0)
clip-path:polygon(0 0,0 0,0 0)
clip-path:polygon(0 0, 0 0, 0 0, 0 0)
clip-path:rect(0 0 0 0)
clip-path:xywh(0 0 0 0)
-webkit-clip-path:inset(100%)
position:absolute;clip:rect(0 0 0 0)
position:absolute;clip:rect(1px,1px,1px,1px)
position:absolute;clip:rect(0,0,0,0)
width:1px;height:1px;overflow:hidden;position:absolute
height:0;overflow:hidden
max-height:0;overflow:hidden
max-height:0;overflow:clip
width:0;overflow:hidden;white-space:nowrap
max-width:0;overflow-x:hidden;white-space:nowrap
height:1px;overflow-y:hidden
block-size:0;overflow:hidden
height:0;overflow:hidden visible
height:calc(0px);overflow:hidden
line-height:0;overflow:hidden
content-visibility:hidden
color:transparent
color:#0000
color:rgba(0,0,0,0)
color:rgb(0 0 0 / 0)
color:rgb(0 0 0 / 0%)
color:hsla(0,0%,0%,0)
color:hsl(0 0% 0% / 0)
color:white
color:#fff
color:#FFFFFF
color:hsl(0,0%,100%)
color:hsl(0 0% 100%)
color:hwb(0 100% 0%)
color:snow
color:rgb(100%,100%,100%)
color:rgb(254 254 254)
color:lab(100 0 0)
color:oklch(1 0 0)
color:color(srgb 1 1 1)
color:color-mix(in srgb, white, white)
color:Canvas
background:#000;color:#000
background-color:navy;color:navy
background-color:hsl(240,100%,25%);color:navy
background:crimson;color:#dc143c
background:rebeccapurple;color:rgb(102,51,153)
background:currentColor
background:linear-gradient(white,white);color:white
background:linear-gradient(to right,#123456 0%,#123456 100%);color:#123456
-webkit-text-fill-color:transparent
-webkit-text-fill-color:white
color:white;color:notacolour
-webkit-text-security:disc
mask-image:linear-gradient(transparent,transparent)
-webkit-mask:linear-gradient(transparent,transparent)
mask:linear-gradient(#0000,#0000)
display:table-column
display:table-column-group
display:var(--nope,none)
--d:none;display:var(--d)
--a:var(--b);--b:none;display:var(--a)
opacity:var(--x,0)
color:var(--x,white)
all:unset;display:none
""".strip().splitlines()
"""Each is the ``style`` of a paragraph that nobody sees."""

HIDING_SHEETS = [
    (".x{display:none}", '<p class="x">%s</p>'),
    (".x{display:none}.x:hover{display:block}", '<p class="x">%s</p>'),
    (".x{display:none}.x:focus{display:block}", '<p class="x">%s</p>'),
    (".x{visibility:hidden}.y:hover .x{visibility:visible}", '<div class="y"><p class="x">%s</p></div>'),
    ("p.x.y{opacity:0}", '<p class="x y">%s</p>'),
    ("div > p[data-k]{display:none}", '<div><p data-k="1">%s</p></div>'),
    ("div p:not(.z){display:none}", "<div><section><p>%s</p></section></div>"),
    ("section p:not(.z){display:none}", "<section><p>%s</p></section>"),
    ("section p:first-child{display:none}", "<section><p>%s</p></section>"),
    ("section p:nth-child(2n+1){display:none}", "<section><p>%s</p></section>"),
    ("section p:nth-last-child(1){display:none}", "<section><p>%s</p></section>"),
    (":is(.x,.y){display:none}", '<p class="y">%s</p>'),
    (":where(.x){display:none}", '<p class="x">%s</p>'),
    ("section:has(b) p{display:none}", "<section><b>b</b><p>%s</p></section>"),
    ("b + p{display:none}", "<section><b>b</b><p>%s</p></section>"),
    ("b ~ p{display:none}", "<section><b>b</b><i>i</i><p>%s</p></section>"),
    ("[class^=hid]{display:none}", '<p class="hidme">%s</p>'),
    ("[class*=dm]{display:none}", '<p class="hidme">%s</p>'),
    ("p[lang|=en]{display:none}", '<p lang="en-GB">%s</p>'),
    ("#z{display:none}.x{display:block}", '<p id="z" class="x">%s</p>'),
    (".x{display:none!important}", '<p class="x" style="display:block">%s</p>'),
    ("@media screen{.x{display:none}}", '<p class="x">%s</p>'),
    ("@media (min-width:300px){.x{display:none}}", '<p class="x">%s</p>'),
    ("@media (width > 300px){.x{display:none}}", '<p class="x">%s</p>'),
    ("@media not print{.x{display:none}}", '<p class="x">%s</p>'),
    ("@media screen and (max-width:99999px){.x{display:none}}", '<p class="x">%s</p>'),
    ("@media print, screen{.x{display:none}}", '<p class="x">%s</p>'),
    ("@media (prefers-color-scheme:light){.x{display:none}}", '<p class="x">%s</p>'),
    ("@supports (display:grid){.x{display:none}}", '<p class="x">%s</p>'),
    ("@supports not (foo:bar){.x{display:none}}", '<p class="x">%s</p>'),
    ("@supports selector(a > b){.x{display:none}}", '<p class="x">%s</p>'),
    ("@supports (display:grid) and (color:red){.x{display:none}}", '<p class="x">%s</p>'),
    ("@layer a{.x{display:none}}", '<p class="x">%s</p>'),
    ("@layer a,b;@layer b{.x{display:none}}@layer a{.x{display:block}}", '<p class="x">%s</p>'),
    ("section{& .x{display:none}}", '<section><p class="x">%s</p></section>'),
    ("section{.x{display:none}}", '<section><p class="x">%s</p></section>'),
    (".x{@media screen{display:none}}", '<p class="x">%s</p>'),
    (":root{--h:none}.x{display:var(--h)}", '<p class="x">%s</p>'),
    (":root{--c:#fff}.x{color:var(--c)}", '<p class="x">%s</p>'),
    (".x{color:white}", '<p class="x">%s</p>'),
    ("body{background:#123}.x{color:#123}", '<p class="x">%s</p>'),
    (".b{background:#123}.x{color:#112233}", '<div class="b"><p class="x">%s</p></div>'),
    (".x{font-size:0}", '<div class="x"><span>%s</span></div>'),
    (".x{opacity:.3}.y{opacity:.1}", '<div class="x"><p class="y">%s</p></div>'),
    (".x{position:absolute}.x{left:-9999px}", '<p class="x">%s</p>'),
    (".x{overflow:hidden}.y{height:0}", '<p class="x y">%s</p>'),
    ("/*}*/.x{display:none}", '<p class="x">%s</p>'),
    ("<!-- .x{display:none} -->", '<p class="x">%s</p>'),
    ("@import url(data:text/css,.x%7Bdisplay:none%7D);", '<p class="x">%s</p>'),
    (".\\78{display:none}", '<p class="x">%s</p>'),
    (".x{clip-path:inset(100%)}", '<div class="x"><p>%s</p></div>'),
    (".x{all:initial;display:none}", '<p class="x">%s</p>'),
    (".x{visibility:hidden}", '<div class="x"><div><p>%s</p></div></div>'),
]
HIDING_MARKUP = [
    "<p hidden>%s</p>",
    '<p hidden="until-found">%s</p>',
    "<div popover>%s</div>",
    '<div popover="manual">%s</div>',
    "<dialog>%s</dialog>",
    "<template>%s</template>",
    '<p><font color="white">%s</font></p>',
    '<p><font color="#ffffff">%s</font></p>',
    '<p><font color="ffffff">%s</font></p>',
    '<table bgcolor="#000"><tr><td><font color="black">%s</font></td></tr></table>',
    '<table><tr><td bgcolor="navy" style="color:navy">%s</td></tr></table>',
    "<video><p>%s</p></video>",
    "<audio>%s</audio>",
    '<object data="data:text/html,x" type="text/html">%s</object>',
    '<iframe srcdoc="x">%s</iframe>',
    "<noframes>%s</noframes>",
    "<noembed>%s</noembed>",
    "<svg><desc>%s</desc></svg>",
    "<svg><title>%s</title></svg>",
    "<svg><defs><text>%s</text></defs></svg>",
    '<svg width="500" height="30"><text y="20" fill="none">%s</text></svg>',
    '<svg width="500" height="30"><text y="20" fill="white">%s</text></svg>',
    "<progress>%s</progress>",
    "<meter>%s</meter>",
    "<datalist><option>%s</option></datalist>",
    "<!-- %s -->",
    "<textarea hidden>%s</textarea>",
    "<p inert hidden>%s</p>",
    "<math><annotation>%s</annotation></math>",
    '<p style="white-space:nowrap" hidden=false>%s</p>',
    '<link rel="stylesheet" href="data:text/css,.lx{display:none}"><p class="lx">%s</p>',
    '<link rel="stylesheet" href="data:text/css;base64,Lmx4e2Rpc3BsYXk6bm9uZX0="><p class="lx">%s</p>',
]
SHOWN = [
    ("", '<p style="display:block">%s</p>'),
    ("", '<p hidden style="display:block">%s</p>'),
    ("", '<div popover style="display:block;position:static">%s</div>'),
    ("", '<div style="visibility:hidden"><p style="visibility:visible">%s</p></div>'),
    ("", '<div style="font-size:0"><span style="font-size:16px">%s</span></div>'),
    ("", '<div style="color:white"><p style="color:black">%s</p></div>'),
    ("", '<div style="background:#024"><p style="color:white">%s</p></div>'),
    (".x{display:none}.x{display:block}", '<p class="x">%s</p>'),
    (".x{display:none}.x.y{display:block}", '<p class="x y">%s</p>'),
    ("@media print{.x{display:none}}", '<p class="x">%s</p>'),
    ("@media (max-width:300px){.x{display:none}}", '<p class="x">%s</p>'),
    ("@supports (foo:bar){.x{display:none}}", '<p class="x">%s</p>'),
    ("@supports not (display:grid){.x{display:none}}", '<p class="x">%s</p>'),
    ("@media (prefers-color-scheme:dark){.x{color:white}}", '<p class="x">%s</p>'),
    ("@media (prefers-reduced-motion:reduce){.x{display:none}}", '<p class="x">%s</p>'),
    (".x{display:nonee}", '<p class="x">%s</p>'),
    (".x{displays:none}", '<p class="x">%s</p>'),
    (".x,.y:bogus{display:none}", '<p class="x">%s</p>'),
    (".x:hover{display:none}", '<p class="x">%s</p>'),
    (".x::before{display:none}", '<p class="x">%s</p>'),
    (".x{display:none!important}.x{display:block!important}", '<p class="x">%s</p>'),
    ("@layer a{.x{display:none}}.x{display:block}", '<p class="x">%s</p>'),
    ("@layer a,b;@layer b{.x{display:block}}@layer a{.x{display:none}}", '<p class="x">%s</p>'),
    ("", '<p style="opacity:0;opacity:1">%s</p>'),
    ("", '<p style="opacity:.5">%s</p>'),
    ("", '<p style="position:absolute;left:50%;margin-left:-300px">%s</p>'),
    ("", '<span style="width:0;height:0;overflow:hidden">%s</span>'),
    ("", '<p style="width:0">%s</p>'),
    ("", '<p style="height:0">%s</p>'),
    ("", '<p style="position:absolute;left:50%;top:200px;transform:translate(-50%,-50%)">%s</p>'),
    ("", '<span style="transform:scale(0)">%s</span>'),
    ("", '<p style="transform:rotate(90deg);margin:200px">%s</p>'),
    ("", '<p style="clip:rect(0 0 0 0)">%s</p>'),
    ("", '<p style="clip-path:inset(0)">%s</p>'),
    ("", '<p style="text-indent:-20px;margin-left:30px">%s</p>'),
    ("", '<p style="left:-9999px">%s</p>'),
    ("", '<p style="opacity:0;display:contents">%s</p>'),
    ("", '<p style="--d:none">%s</p>'),
    ("", '<p style="display:var(--nope)">%s</p>'),
    ("", '<p style="font:400 1em/1.2 serif">%s</p>'),
    ("", '<p style="font:bold 14px Arial">%s</p>'),
    ("", '<p style="color:wihte">%s</p>'),
    ("", '<p style="background:linear-gradient(90deg,#f00,#00f);-webkit-background-clip:text;color:transparent">%s</p>'),
    ("", "<noscript><p>%s</p></noscript>"),
    ("", "<details open><summary>x</summary><p>%s</p></details>"),
    ("", "<dialog open>%s</dialog>"),
    ("", '<svg width="500" height="30"><text y="20">%s</text></svg>'),
    ("", '<a href="x" style="">%s</a>'),
    ("", '<div style="color:white"><a href="x">%s</a></div>'),
    ("", '<div style="height:0;overflow:hidden"><p style="position:absolute">%s</p></div>'),
    ("", "<p inert>%s</p>"),
    ("", '<p style="max-height:200px;overflow:hidden">%s</p>'),
    ("", '<p style="filter:grayscale(1)">%s</p>'),
    ("", '<p style="transform:scale(-1,1)">%s</p>'),
    ("", '<mark style="">%s</mark>'),
    ("p{color:red;/* display:none */}", "<p>%s</p>"),
    ("section:has(u) p{display:none}", "<section><b>b</b><p>%s</p></section>"),
    (".no-js .x{display:none}", '<p class="x">%s</p>'),
    ("@media print{", '<p class="x">%s</p>'),
    ("@scope (.q){.x{display:none}}", '<p class="x">%s</p>'),
    ("", '<p style="scale:1">%s</p>'),
    ("", '<p style="translate:10px">%s</p>'),
    ("", '<p style="line-height:0;margin:30px">%s</p>'),
    ("", '<p style="visibility:hidden;visibility:visible">%s</p>'),
    ("", '<p style="mask-image:linear-gradient(black,transparent)">%s</p>'),
    ("", '<p style="text-align:right;direction:rtl">%s</p>'),
    ("", "<ruby>%s<rt>x</rt></ruby>"),
    ("", "<button>%s</button>"),
    ("", '<table bgcolor="black"><tr><td><font color="white">%s</font></td></tr></table>'),
]
HIDDEN = [
    *[("", f'<p style="{style}">%s</p>') for style in HIDING_STYLES],
    ("@keyframes gone{to{opacity:0}}", '<p style="animation:gone 1ms forwards">%s</p>'),
    *HIDING_SHEETS,
    *[("", markup) for markup in HIDING_MARKUP],
]


def page(sheet: str, element: str, text: str = TEXT) -> str:
    head = f"<title>t</title><style>{sheet}</style>" if sheet else "<title>t</title>"
    return f"<!doctype html><html><head>{head}</head><body><p>Before it.</p>{element.replace('%s', text)}<p>After it.</p></body></html>"  # noqa: E501


@pytest.mark.parametrize(("sheet", "element"), HIDDEN)
def test_what_nobody_sees_is_not_read(sheet: str, element: str) -> None:
    read = read_bytes(page(sheet, element).encode(), "page.html")
    assert "SECRETWORDS" not in read.text
    assert "Before it." in read.text
    assert "After it." in read.text


@pytest.mark.parametrize(("sheet", "element"), SHOWN)
def test_what_a_browser_shows_is_read(sheet: str, element: str) -> None:
    read = read_bytes(page(sheet, element).encode(), "page.html")
    assert TEXT in read.text
    assert not read.doubtful


@pytest.mark.parametrize(
    ("sheet", "element"),
    [
        ("", '<div style="background:url(a.png)"><p style="color:white">%s</p></div>'),
        ("", '<link rel="stylesheet" href="a.css"><div class="dark"><p style="color:white">%s</p></div>'),
        ("", '<p style="mask-image:url(a.png)">%s</p>'),
        ("", '<p style="mix-blend-mode:lighten">%s</p>'),
        ("", '<p style="position:relative;z-index:-1">%s</p>'),
        ("", '<p style="clip-path:url(#a)">%s</p>'),
        ("", '<p style="filter:brightness(0)">%s</p>'),
    ],
)
def test_what_the_page_does_not_decide_is_read_and_marked(sheet: str, element: str) -> None:
    read = read_bytes(page(sheet, element).encode(), "page.html")
    assert [read.text[start:end] for start, end in read.doubtful] == [TEXT]
    assert read.doubtful_elements == 1


@pytest.mark.parametrize(
    "sheet",
    [
        "* * * * * * * * * * * * b{display:none}",
        "".join(f"[a{number}]" for number in range(300)) + "{display:none}",
        ":not(" * 200 + "a" + ")" * 200 + "{display:none}",
        "a{--a0:x;"
        + "".join(f"--a{number + 1}:var(--a{number}) var(--a{number});" for number in range(60))
        + "color:var(--a60)}",
        "@media screen{" * 3000,
        "x{" * 3000,
    ],
)
def test_a_sheet_made_to_be_costly_is_read_or_refused(sheet: str) -> None:
    deep = "<div>" * 60 + "".join("<i><a>x</a></i>" for _ in range(200)) + "</div>" * 60
    try:
        read = read_bytes(page(sheet, deep + "<p>%s</p>").encode(), "page.html")
    except SourceError as error:
        assert "style sheets are too complex" in str(error)  # noqa: PT017 -- either is right
    else:
        assert TEXT in read.text


@pytest.mark.soak
def test_chromium_shows_the_same() -> None:
    """Pixels tell: where other letters change nothing, nobody sees them. Faint and tiny letters are a matter of degree."""
    from PIL import Image, ImageChops
    from playwright.sync_api import sync_playwright

    # a coloured cell is as wide as its text, so that its edge moves with the letters
    degree = (
        "bgcolor",
        "opacity:.0",
        "opacity(.02",
        ".1}",
        "blur",
        "font-size:1px",
        "font-size:.01em",
        "1px/1",
        "text-security",
    )
    differing = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        tab = browser.new_context(java_script_enabled=False, viewport={"width": 1280, "height": 720}).new_page()

        def shot(html: str) -> Image.Image:
            tab.set_content(html)
            return Image.open(io.BytesIO(tab.screenshot())).convert("RGB")

        for table, seen in ((HIDDEN, False), (SHOWN, True)):
            for sheet, element in table:
                if any(one in sheet + element for one in degree) or element.startswith("<object"):
                    continue
                one, other = shot(page(sheet, element)), shot(page(sheet, element, OTHER))
                most = (
                    max(high for _, high in ImageChops.difference(one, other).getextrema()) if one.size == other.size else 255
                )
                if (most > 12) != seen:
                    differing.append((sheet, element))
        browser.close()
    assert differing == []
