"""Steps over text of the readers of documents, each with texts that could make it slow."""

from __future__ import annotations

from attacks.growth import in_prose

DOCUMENTS = {
    "documents/markdown.py, parser": in_prose(
        "markdown_parser().parse(text[:N])", "from nlp_retrieval.documents.markdown import markdown_parser"
    ),
    "documents/blocks.py, addresses": in_prose(
        "web_address('https://www.google.com/url?' + text), web_address(text), list(plain_links(text)), trimmed(text)",
        "from nlp_retrieval.documents.blocks import plain_links, trimmed, web_address",
    ),
    "documents/markdown.py": in_prose(
        "read_markdown(text[:N], 'a.md')", "from nlp_retrieval.documents.markdown import read_markdown"
    ),
    "documents/bibliography.py": in_prose(
        "\n    ".join(
            [
                "for before in ('@a{b, title={', '@a{', '[', ''):",
                "    try:",
                "        read_bibliography(before + text[:N])",
                "    except InputError:",
                "        pass",
            ]
        ),
        "from nlp_retrieval.errors import InputError\nfrom nlp_retrieval.documents.bibliography import read_bibliography",
    ),
    "documents/latex.py": in_prose(
        "[pattern.sub('', before + text) for pattern in PATTERNS for before in BEFORE]",
        "from nlp_retrieval.documents import latex\n"
        "PATTERNS = [value for value in vars(latex).values() if isinstance(value, latex.re.Pattern)]\n"
        "MACROS = 'url{ input{ bibliography{ cite{ cite< lstinline{ def{ newcommand{ iffalse begin{verbatim}'.split()\n"
        "BEFORE = ('', '$^{', '[a](', *(chr(92) + macro for macro in MACROS))",
    ),
    "documents/blocks.py, unseen characters": in_prose("clean_text(text)", "from nlp_retrieval.documents import clean_text"),
}
