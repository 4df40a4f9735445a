"""Every pinned version can be had on the oldest Python that the package promises, its first patch release included."""

from __future__ import annotations

import configparser
from importlib.metadata import distributions

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from .conftest import ROOT


def test_every_installed_version_admits_each_python_that_the_package_admits():
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg", "utf-8")
    ours = SpecifierSet(setup["options"]["python_requires"])
    (oldest,) = (Version(one.version) for one in ours if one.operator == ">=")
    pythons = [f"3.{minor}.0" for minor in range(oldest.minor, oldest.minor + 3)]
    refused = [
        f"{one.metadata['Name']} {one.version} wants {wanted}, not {python}"
        for one in distributions()
        if (wanted := one.metadata.get("Requires-Python"))
        for python in pythons
        if not SpecifierSet(wanted).contains(python)
    ]
    assert not refused
