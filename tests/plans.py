"""Plans of invented countries in two versions, with what changed between them, and traps."""

from __future__ import annotations

from nlp_retrieval import SearchableItem

COUNTRIES = ("Alder", "Brenn")
EARLIER, LATER = 2021, 2024


def chunk(item_id: str, content: str, country: str = "Alder", year: int = EARLIER, position: int = 0) -> SearchableItem:
    """A passage of a plan."""
    metadata = {"country": country, "year": year, "document": f"{country} {year}", "position": position}
    return SearchableItem(item_id=item_id, content=content, metadata=metadata)


def two_versions(country: str = "Alder") -> list[SearchableItem]:
    """A plan of 2021 and the plan of 2024 that took its place: unchanged, edited, another figure, dropped, added, moved."""
    key = country[0].lower()
    earlier = [
        f"{country} will protect its mangrove forests and plant young trees along the whole northern coast every single year.",
        f"Solar power plants in {country} shall reach a capacity of 30 GW by 2030 under the auction scheme of the ministry.",
        "Buses of the capital run on diesel, and a tram line along the river is studied by the transport authority at present.",
        "Farmers receive advice on drought resistant seeds from regional offices, which keep records of rainfall and harvests.",
        "Waste is collected in open landfills, where methane escapes, and households pay no fee for what they throw away.",
    ]
    later = [
        earlier[0],
        earlier[1].replace("30 GW", "45 GW"),
        earlier[3].replace("which keep records of rainfall and harvests", "which also lend pumps and tools to small farms"),
        "A carbon price of 20 USD per tonne starts in 2026 and its revenue pays for the insulation of public housing blocks.",
        "Buses of the capital become electric, and depots along the ring road receive chargers financed with green bonds.",
    ]
    return [
        *(chunk(f"{key}-old-{place}", text, country, EARLIER, place) for place, text in enumerate(earlier)),
        *(chunk(f"{key}-new-{place}", text, country, LATER, place) for place, text in enumerate(later)),
    ]
