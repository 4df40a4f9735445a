"""The templates of the page: every printed value is escaped and stripped of control characters for browsers and terminals.

Only markup created by these modules (drawings, rendered parts) is inserted unescaped.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from jinja2 import ChoiceLoader, Environment, FileSystemLoader, PackageLoader, StrictUndefined
from markupsafe import Markup

from nlp_retrieval.benchmarks.cost import amount
from nlp_retrieval.core.components.component import Config
from nlp_retrieval.core.search.expressions import NAMESPACE, drawing
from nlp_retrieval.evaluation.comparison import LEVEL, Comparison, limits, verdict
from nlp_retrieval.evaluation.measures import Measure
from nlp_retrieval.reports.figures import (
    ALPHA,
    BETTER,
    MARK,
    NOTHING_TO_FIND,
    WORSE,
    Column,
    family_label,
    mark_of,
    p_text,
    signed,
    unit,
)
from nlp_retrieval.reports.page.charts import COLOURS, finite, interval_plot, stage_bar
from nlp_retrieval.reports.view import CALLS_AND_TOKENS, Row
from nlp_retrieval.text.printing import counted, listed, printable, visible

_ASSETS = Path(__file__).parent / "assets"


def rendered(template: str, folder: Path | None = None, /, **values: object) -> Markup:
    """Return a page, or a part of one.

    Args:
        template: its file in ``templates``.
        folder: templates of another package; missing ones are taken from the library.
        values: the variables, by name.

    Examples:
        >>> Path("templates").mkdir()
        >>> _ = Path("templates/greeting.html").write_text("<p>{{ name }}</p>")
        >>> rendered("greeting.html", Path("templates"), name="<b>Ada</b>")
        Markup('<p>&lt;b&gt;Ada&lt;/b&gt;</p>')
    """
    return Markup(_environment(folder).get_template(template).render(**values))  # noqa: S704 - escaped as it was rendered


@cache
def asset(name: str, folder: Path | None = None) -> Markup:
    """Return a style sheet or a script.

    Args:
        name: its file.
        folder: folder of another package; by default ``assets`` of this one.

    Examples:
        >>> len(asset("report.css")) > 0
        True
    """
    return Markup(((folder or _ASSETS) / name).read_text("utf-8"))  # noqa: S704 - a file of an installed package


def _drawn(config: Config) -> Markup:
    """Return the drawing of a searcher; nothing for other entrants, and for what no searcher could have written."""
    try:
        svg = drawing(config) if config.get("name") == "searcher" else ""
        return Markup(svg.replace(f' xmlns="{NAMESPACE}"', ""))  # noqa: S704 - escaped by drawing; a page needs no namespace
    except (AttributeError, KeyError, TypeError, ValueError):  # a run folder may be anybody's
        return Markup()


@cache
def _environment(folder: Path | None) -> Environment:
    own = PackageLoader(__package__)
    environment = Environment(
        loader=own if folder is None else ChoiceLoader([FileSystemLoader(folder), own]),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=lambda value: value if isinstance(value, Markup) else printable(str(value)),
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "amount": amount,
        "best_first": _best_first,
        "breakable": _breakable,
        "counted": counted,
        "family_label": family_label,
        "grouped": "{:,}".format,
        "digest": _digest,
        "drawn": _drawn,
        "interval": interval_text,
        "in_order": lambda values, keys: [values.get(key) for key in keys],
        "interval_plot": interval_plot,
        "json_lines": lambda value: _text_lines(json.dumps(value, indent=2, ensure_ascii=False, default=str)),
        "limits": lambda comparison: limits(comparison, ALPHA),
        "listed": listed,
        "mark": mark_of,
        "measure_title": lambda key: Measure.parse(key).label,
        "p_text": p_text,
        "series_class": lambda place: f"series-{place % COLOURS}",
        "signed": signed,
        "stage_bar": stage_bar,
        "text_lines": _text_lines,
        "unit": unit,
        "visible": visible,
        "visible_lines": lambda text: Markup("\n").join(map(visible, text.split("\n"))),  # which escapes each
        "verdict": lambda comparison: verdict(comparison, ALPHA),
    }
    environment.tests["finite"] = lambda value: finite(value) is not None
    environment.globals |= {
        "ALPHA": f"{ALPHA:g}",
        "CALLS_AND_TOKENS": CALLS_AND_TOKENS,
        "CLASSES": {"better": "better", "worse": "worse", "not distinguishable": "chance"},
        "FRONT": MARK,
        "LEVEL": f"{LEVEL:.0%}",
        "NOTHING_TO_FIND": NOTHING_TO_FIND,
        "BETTER": BETTER,
        "WORSE": WORSE,
    }
    return environment


def _digest(text: str) -> str:
    """Return the hash by which a content security policy allows this text."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _breakable(text: str) -> Markup:
    """A name with possible line breaks: after the separators of its words, never inside a word."""
    return Markup("<wbr>").join(re.split(r"(?<=[-_/=+.:,;])(?=\w)", printable(text)))


def _best_first(rows: Sequence[Row], column: Column | None) -> list[Row]:
    values = {row.result.name: row.cells[column.key].value if column is not None else None for row in rows}
    return sorted(rows, key=lambda row: -math.inf if (value := values[row.result.name]) is None else value, reverse=True)


def _text_lines(text: str) -> Markup:
    return Markup("\n").join(map(printable, text.split("\n")))


def interval_text(comparison: Comparison) -> str:
    """Return the interval of a difference: ``"+0.021 to +0.080"``."""
    low, high = comparison.interval
    return f"{signed(low)} to {signed(high)}" if low < high else signed(low)
