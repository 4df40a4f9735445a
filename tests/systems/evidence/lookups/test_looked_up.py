"""What is looked up between a claim and a source, on pairs that were written before the mechanism, by kind.

Half of each kind were there to develop on; the others ("judge") were measured once, at the end.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nlp_retrieval.systems.evidence.lookups.checks import LookedUp, looked_up

PAIRS = [json.loads(line) for line in Path(__file__).with_name("looked_up.jsonl").read_text("utf-8").splitlines()]
DEVELOP, JUDGE = 0.88, 0.85
"""Least shares of right ones; 61 of 68 and 59 of 66 were measured."""


def _is_right(label: str, found: LookedUp) -> bool:
    return {
        "true": not found.findings,
        "false": bool(found.findings),
        "against": found.is_against,
        "neutral": not found.is_against,
    }[label]


def _right(pairs: list[dict[str, str]], *, shuffled: bool = False) -> float:
    sources = [pair["source"] for pair in pairs]
    sources = sources[-7:] + sources[:-7] if shuffled else sources
    found = [looked_up(pair["claim"], source, source) for pair, source in zip(pairs, sources, strict=True)]
    return sum(_is_right(pair["label"], one) for pair, one in zip(pairs, found, strict=True)) / len(pairs)


@pytest.mark.parametrize(("half", "least"), [("develop", DEVELOP), ("judge", JUDGE)])
def test_most_pairs_of_each_half_are_looked_up_rightly_and_fewer_beside_other_sources(half: str, least: float) -> None:
    pairs = [pair for pair in PAIRS if pair["half"] == half]
    assert len(pairs) > 60
    assert _right(pairs) >= least
    assert _right(pairs, shuffled=True) < 0.6


@pytest.mark.parametrize(
    ("claim", "source", "how"),
    [
        ("The works took three years.", "The works began in 1962 and ended in 1965.", "three years: from 1962 to 1965"),
        (
            "Ost got 39 million more than Vest.",
            "Vest got 58 million, after Ost with 97 million.",
            "39 million: 97 million - 58 million",
        ),
        ("The club lost 14 members.", "The club had 61 members in May and 47 in June.", "14: 61 - 47"),
        ("Over 30% of the beds were free.", "Of 90 beds, 29 were free.", "30%: 29 of 90"),
        (
            "Together they sold about 100 tonnes.",
            "Ost sold 41.2 tonnes, Vest 36.8 tonnes and Nord 58.9 tonnes.",
            "100 tonnes: 41.2 + 58.9",
        ),
    ],
)
def test_a_computed_number_is_no_missing_one_and_says_how(claim: str, source: str, how: str) -> None:
    found = looked_up(claim, source, source)
    assert found.computed == ((how,) if how else ())
    assert bool(found.findings) is not bool(how)


BEES = "In Osterland 12% of the farms keep bees. Hail destroyed 45% of the orchards in May."
LINES = (
    "Line | Riders 2022 | Punctuality\nLine 1 | 12.4 million | 91%\nLine 2 | 10.2 million | 88%\nLine 3 | 14.2 million | 84%"
)
SLEEP = "Sleep is not only vital for memory and mood but also for growth."


@pytest.mark.parametrize(
    ("label", "claim", "source"),
    [
        # the number is in a sentence about something else
        ("against", "Some 45% of the farms in Osterland keep bees.", BEES),
        ("true", "Some 12% of the farms in Osterland keep bees.", BEES),
        # both have a negating word, or "not only"
        ("against", "False alarms are not counted as fires.", "False alarms are counted as fires."),
        ("against", "Sleep is not vital for memory and mood.", SLEEP),
        # a numeral is part of a name
        ("false", "The bridge was destroyed in World War I.", "The bridge was destroyed in World War II."),
        # another thing of a kind
        ("false", "The pump needs liquid nitrogen to run.", "The pump needs liquid helium to run."),
        # a name is missing, and the other names of the claim are there
        ("true", "Men had higher rates of gout than women.", "Rates of gout were lower in women than in men."),
        ("against", "Rates of gout were 12% higher than in 2010.", "Rates of gout were 12% lower than in 2010."),
        # an opposite is said of the same
        ("true", "The lamp enhances sleep in mice by a slow rhythm.",
         "In mice a slow rhythm of the lamp enhances sleep, and can "
         "inhibit appetite."),
        # who did it: an infinitive has no agent before it
        ("true", "The council said that the soil can support trees.",
         "The soil was rich enough to support trees, the council said."),
        ("against", "The council supports the bridge.", "The union supports the bridge; the council waits."),
        # two values of one sentence, each said of the other
        ("against", "Of the adults 41% owned a bicycle, of the teenagers 63%.",
         "Bicycles were owned by 63% of adults and by 41% of teenagers."),
        # what a table is about is in its caption
        ("against", "Rye made up 48% of the harvest of Ostmark in 2019.",
         "Table 2. Harvest of Ostmark, 2019\n| Grain | Tonnes | Share |\n| Barley | 9,100 | 48% |\n| Rye | 6,000 | 32% |"),
        # the sentence with the number has what the claim is about, though another sentence has more of its words
        ("true", "Trams carried about 41 million riders.",
         "Traffic by tram reached 41.2 million. Buses carried 58.9 million riders."),
        ("true", "Rates were 4.1% in 2018.", "Rates rose to 5.0%, compared to 4.1% in 2018."),
        # a figure of another year is no contradiction
        ("neutral", "The ferry carried 3.1 million riders in 2005.", "The ferry carried 2.4 million riders in 2019."),
        ("against", "The ferry carried 3.1 million riders in 2019.", "The ferry carried 2.4 million riders in 2019."),
        # shares and amounts in words
        ("true", "Around one in twelve patients fell ill.", "Of the patients 8.1% fell ill."),
        # a level is no difference
        ("false", "The term was cut from eight years to six.", "After eleven years, the term of eight years was cut by five."),
        # which of several in order
        ("false", "The pier will be done in the third quarter of 2031.", "The pier will be done in the first quarter of 2031."),
        # who did it, in other words
        ("against", "The champion was beaten by the young baker.", "The champion Ida Ost defeated the young baker Per Lund."),
        ("false", "The board advised the ban on cars.", "The board advised against the ban on cars."),
        ("false", "The mayor closed the lido on the advice of the health board.",
         "The mayor closed the lido. The health board had advised against closing the lido."),
        # in German, nouns are capitalised
        ("true", "Ohne Deckel lag der Verbrauch bei 0,45 kWh, mit Deckel bei 0,19 kWh.",
         "Mit Deckel wurden 0,19 kWh verbraucht, ohne Deckel 0,45 kWh."),
        ("false", "Das Rathaus wurde von der Architektin Ida Osterloh entworfen und gebaut.",
         "Das Rathaus wurde von der Architektin Rosa Kemmerich entworfen und gebaut."),
        # names of countries and people
        ("true", "The Ombrian fleet sailed north in May.", "The fleet of Ombria sailed north in May."),
        ("true", "Entry is free under 16.", "Entry is free for children under 16; adults pay 14 euros."),
        # what a number is over; a bound that a difference of other figures would fit
        ("false", "The water held 5 mg/l of salt.", "The water held 5 mmol/l of salt."),
        # ratios
        ("true", "Three times as many cars use the tunnel.", "The tunnel has 7,900 cars a day, the ferry had 2,600."),
        # both deny, by other words or beside something else
        ("against", "Cities, not farmers, cause most of the load.", "Farmers, not cities, cause most of the load."),
        ("true", "The tax is not paid by cities.", "The tax is paid by farmers, not by cities."),
        ("against", "Chlorophyll decreased in the lakes that were sampled.", "Chlorophyll did not change."),
        # who won; a name that differs by its sign alone, or by how its number is written
        ("against", "Aino Salmi won the race ahead of Ingrid Moen.", "Ingrid Moen won the race, ahead of Aino Salmi."),
        ("false", "The tool is written in C#.", "The tool is written in C++."),
        ("true", "The Second World War destroyed the bridge.", "The bridge was destroyed in World War II."),
        ("true", "The park has a capacity of 0.187 GW.", "The park has a capacity of 187 MW."),
        # a number belongs to the numbered thing that has it
        ("against", "Line 2 had a punctuality of 91%.", LINES),
        ("true", "Line 2 had a punctuality of 88%.", LINES),
        ("against", "Reactor 2 produced 410 MW.", "Reactor 1 produced 410 MW, reactor 2 produced 390 MW."),
        ("true", "Reactor 2 produced 390 MW.", "Reactor 1 produced 410 MW, reactor 2 produced 390 MW."),
        # both ends of a range, an ordinal, the year of a date, and words of other languages, as what is beside a number
        ("against", "The north has 30 to 40 wolves.", "There are 12 to 15 wolves in the north and 30 to 40 in the south."),
        ("against", "Ost ranks ninth in tin.", "Ost ranks fourth in tin and ninth in lead among the states."),
        ("against", "The pier was opened in 1911.", "The pier was planned on 4 May 1911 and opened in 1914."),
        ("true", "Die Schulden betragen 700 Mio. Euro.",
         "Die Stadt hat 1,4 Mio. Einwohner. Die Schulden sanken im Okt. 2022 auf 700 Mio. Euro."),
        ("true", "The choir has 90 girls aged 8 to 14.", "The choir has 90 girls. They are 8 to 14 years old."),
        # a sentence that denies may be about the one before it; what denies the opposite says the same
        ("against", "The vaccine prevented mumps in recruits.", "The vaccine was given to recruits. It did not prevent mumps."),
        ("against", "Goods are moved on the Ost line.", "The Ost line is open. Goods are no longer moved on it."),
        ("true", "The bank had lost no money.", "The bank was closed. It has not commented. No money was lost by the bank."),
        ("true", "The plan was rejected by the council.", "The plan was not accepted by the council."),
        ("true", "The orchid is not rare in Ombria.", "The orchid is common in Ombria."),
        ("true", "The dam was begun in 1923 and opened in 1932.", "The dam was begun in 1923. It was not opened until 1932."),
        ("true", "A pier was built by monks and is used.", "Monks built a pier. It is not used by ships, but walkers use it."),
        ("true", "The duke refused to sign the treaty.", "The duke was shown the treaty. He did not sign it."),
        ("true", "The cream relieved the itch, but not the pain.", "The cream relieved the itch. It did not relieve the pain."),
        ("true", "Levies apply to land.", "Levies do not apply to homes, but apply to land of any kind."),
        # the forms of a verb are one word
        ("against", "The team won the cup.", "The team failed to win the cup."),
        ("against", "The ferry carries dogs.", "The ferry does not carry dogs."),
        # kings of a name, versions of a program, units of one quantity
        ("false", "Charles V gave up the throne.", "Charles IV gave up the throne."),
        ("false", "It was fixed in version 2.1.", "Version 2.10 fixed it."),
        ("true", "Pius IX wrote the letter.", "The letter is by Pius IX, and not by Pius X."),
        ("true", "A call took 0.25 s.", "A call took 250 ms, a start 1.8 s."),
        # a part and its whole are of two sorts
        ("true", "Of the 640 nurses 52 resigned.", "In all 52 of 640 nurses and 11 of 210 doctors resigned."),
        ("against", "In all 52 of 210 doctors resigned.", "In all 52 of 640 nurses and 11 of 210 doctors resigned."),
    ],
)  # fmt: skip
def test_each_mechanism_is_right_on_pairs_that_it_was_not_made_for(label: str, claim: str, source: str) -> None:
    assert _is_right(label, looked_up(claim, source, source))
