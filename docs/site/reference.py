"""What the site has beyond the pages: the reference, the help of the commands, and links from names to their descriptions.

All of it is made from the code, so nothing here has to be kept up with it.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from importlib import import_module
from importlib.metadata import entry_points
from pkgutil import iter_modules
from typing import Annotated, Any, get_args, get_origin

import click
from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.pycode import ModuleAnalyzer
from sphinx.transforms import SphinxTransform
from sphinx.util.docutils import SphinxDirective
from sphinx.util.inspect import stringify_signature
from typer.main import get_command

import nlp_retrieval
from nlp_retrieval._public_names import ROOMS, modules_of
from nlp_retrieval.cli.app import app as command_line

WIDTH = 88
PACKAGES = {f"nlp_retrieval.{room}": f"nlp_retrieval.{room}" for room in ROOMS}
PACKAGES |= {f"nlp_retrieval.{system.name}": system.value for system in entry_points(group="nlp_retrieval.systems")}
PACKAGES["nlp_retrieval"] = "nlp_retrieval"  # last: a name that the root has too is described as the root's
PATHS = {name: f"{shown}.{name}" for shown, package in PACKAGES.items() for name in modules_of(package)}
"""Where each public name is imported from."""
MODULES = {name: module for package in PACKAGES.values() for name, module in modules_of(package).items()}
"""The module that defines each public name."""


class PublicNames(SphinxDirective):
    """The public names of the packages that are its arguments, each with its docstring."""

    required_arguments = 1
    optional_arguments = 10

    def run(self) -> list[nodes.Node]:
        names = [name for name in sorted(PATHS) if self._is_here(name) and name != "__version__"]
        if not names:
            raise self.error(f"no public name is defined in {' '.join(self.arguments)}")
        described = "\n".join(map(_described, names))
        return self.parse_text_to_nodes(f"````{{eval-rst}}\n{described}\n````\n")

    def _is_here(self, name: str) -> bool:
        room = MODULES[name].removeprefix("nlp_retrieval.").removeprefix("systems.").partition(".")[0]
        return room in self.arguments


def _described(name: str) -> str:
    path = PATHS[name]
    value = getattr(import_module(path.rpartition(".")[0]), name)
    if isinstance(value, type):
        return f".. autoclass:: {path}\n"
    if callable(value) and hasattr(value, "__code__"):
        return f".. autofunction:: {path}\n"
    text = ModuleAnalyzer.for_module(MODULES[name]).find_attr_docs().get(("", name), [])
    return f".. py:data:: {path}\n\n" + textwrap.indent("\n".join(text), "   ") + "\n"


class ModulesOf(SphinxDirective):
    """Modules below the one that is its argument, or, with names, what it offers."""

    required_arguments = 1
    optional_arguments = 1

    def run(self) -> list[nodes.Node]:
        package = import_module(self.arguments[0])
        if self.arguments[1:] == ["modules"]:
            found = [f"{package.__name__}.{module.name}" for module in iter_modules(package.__path__)]
            described = "\n".join(f".. automodule:: {name}\n" for name in found)
        else:
            found = [name for name in package.__all__ if isinstance(getattr(package, name), type)]
            described = "\n".join(f".. autoclass:: {package.__name__}.{name}\n" for name in found)
        return self.parse_text_to_nodes(f"````{{eval-rst}}\n{described}\n````\n")


class CommandLine(SphinxDirective):
    """The help of every command, as the terminal shows it."""

    def run(self) -> list[nodes.Node]:
        sections: list[nodes.Node] = []
        for words, command in sorted(_commands(get_command(command_line), ("nlp-retrieval",))):
            text = " ".join(words)
            section = nodes.section(ids=[nodes.make_id(text)], names=[text])
            section += nodes.title(text, text)
            section += nodes.literal_block(_help := _plain_help(command, words), _help, language="text")
            sections.append(section)
        return sections


def _commands(command: Any, words: tuple[str, ...]) -> list[tuple[tuple[str, ...], Any]]:
    if not hasattr(command, "list_commands"):
        return [] if command.hidden else [(words, command)]
    inner = {name: command.get_command(None, name) for name in command.list_commands(None)}
    return [listed for name, each in inner.items() for listed in _commands(each, (*words, name))]


def _plain_help(command: Any, words: tuple[str, ...]) -> str:
    command.rich_markup_mode = None
    context = click.Context(command, info_name=" ".join(words), max_content_width=WIDTH, terminal_width=WIDTH)
    return str(context.get_help())


def _signature(_app: Sphinx, what: str, _name: str, value: Any, *_: Any) -> tuple[str, str] | None:
    """The signature that Python itself gives a class; bounds of parameters are left to the description."""
    if what != "class" or issubclass(value, BaseException):
        return None
    signature = inspect.signature(value)
    parameters = [one.replace(annotation=_plain(one.annotation)) for one in signature.parameters.values()]
    told = signature.replace(parameters=parameters, return_annotation=inspect.Signature.empty)
    return stringify_signature(told, unqualified_typehints=True), ""


class _WithoutBounds(ast.NodeTransformer):
    """``Annotated[int, Field(ge=1)] | None`` becomes ``int | None``."""

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        self.generic_visit(node)
        annotated = ast.unparse(node.value) == "Annotated" and isinstance(node.slice, ast.Tuple)
        return node.slice.elts[0] if annotated else node  # type: ignore[attr-defined]


def _plain(annotation: Any) -> Any:
    if isinstance(annotation, str):
        return ast.unparse(_WithoutBounds().visit(ast.parse(annotation, mode="eval")))
    return get_args(annotation)[0] if get_origin(annotation) is Annotated else annotation


def _dashes(_app: Sphinx, doctree: nodes.document) -> None:
    """A dash between a parameter and its description, as elsewhere in print."""
    for text in list(doctree.findall(nodes.Text)):
        if text == " -- ":
            text.parent.replace(text, nodes.Text(" – "))  # noqa: RUF001


class NamesAreLinks(SphinxTransform):
    """A public name in the text leads to its description."""

    default_priority = 400

    def apply(self, **_: Any) -> None:
        for literal in list(self.document.findall(nodes.literal)):
            name = literal.astext().removesuffix("()").rpartition(".")[2]
            outer = literal.parent
            if name in MODULES and not isinstance(outer, nodes.reference | addnodes.pending_xref | nodes.title):
                link = addnodes.pending_xref(
                    "", refdomain="py", reftype="obj", reftarget=PATHS[name], refexplicit=True, refwarn=True
                )
                link["refdoc"] = self.env.docname
                literal.replace_self(link)
                link += literal


def setup(app: Sphinx) -> dict[str, Any]:
    """Add what the pages below ``reference/`` use."""
    app.add_directive("public-names", PublicNames)
    app.add_directive("modules-of", ModulesOf)
    app.add_directive("command-line", CommandLine)
    app.add_transform(NamesAreLinks)
    app.connect("autodoc-process-signature", _signature)
    app.connect("doctree-read", _dashes)
    return {"version": nlp_retrieval.__version__, "parallel_read_safe": True, "parallel_write_safe": True}
