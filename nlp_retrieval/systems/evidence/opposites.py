"""Opposition of a claim and a passage: negation in only one of them, words of opposite meaning, another thing of a kind."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache
from typing import NamedTuple

from nlp_retrieval.systems.evidence.names import numbered_things, stemmed
from nlp_retrieval.text import FUNCTION_WORDS, as_latin, stems_of_language, words_of

_NEGATION = re.compile(
    r"\b(?:not|no|never|none|nobody|nothing|neither|nor|cannot|without|lacks?|lacked|lacking|fail(?:s|ed)?|unable|absence|"
    r"hardly|barely|rarely|unlikely|false|untrue|myth|incorrect|refuted?|denie[sd]|reject(?:s|ed)?)\b|n['\u2019]t\b",
    re.IGNORECASE,
)

_PAIRS = (
    "increase decrease", "increases decreases", "increased decreased", "increasing decreasing", "increase reduce",
    "increases reduces", "increased reduced", "increasing reducing", "higher lower", "high low", "highest lowest",
    "more less", "more fewer", "most least", "greater smaller", "greater lower", "larger smaller", "large small",
    "largest smallest", "longer shorter", "long short", "before after", "earlier later", "early late", "first last",
    "better worse", "best worst", "positive negative", "positively negatively", "promote inhibit", "promotes inhibits",
    "promoted inhibited", "activate inhibit", "activates inhibits", "activation inhibition", "activation suppression",
    "enhance impair", "enhances impairs", "enhances reduces", "enhanced impaired", "enhances suppresses",
    "induces suppresses", "induces prevents", "induces inhibits", "stimulates inhibits", "upregulated downregulated",
    "upregulates downregulates", "presence absence", "present absent", "cause prevent", "causes prevents",
    "improve worsen", "improves worsens", "improved worsened", "gain loss", "gains losses", "gained lost", "win lose",
    "won lost", "wins loses", "success failure", "successful unsuccessful", "effective ineffective", "able unable",
    "likely unlikely", "common rare", "often rarely", "always never", "all none", "above below", "over under", "north south",
    "northern southern", "east west", "eastern western", "left right", "male female", "man woman", "men women",
    "father mother", "son daughter", "brother sister", "husband wife", "born died", "alive dead", "living dead", "old young",
    "older younger", "oldest youngest", "hot cold", "warm cool", "warmer cooler", "warming cooling", "wet dry", "fast slow",
    "faster slower", "strong weak", "stronger weaker", "rich poor", "safe dangerous", "safe unsafe", "good bad", "true false",
    "legal illegal", "public private", "rise fall", "rises falls", "rose fell", "rising falling", "grow shrink",
    "growing shrinking", "grew shrank", "expand contract", "accept reject", "accepted rejected", "agree disagree",
    "support oppose", "supports opposes", "supported opposed", "allow forbid", "allowed banned", "include exclude",
    "includes excludes", "included excluded", "maximum minimum", "major minor", "majority minority", "upper lower",
    "sensitive resistant", "sensitivity resistance", "susceptible resistant", "dependent independent", "same different",
    "similar different", "acute chronic", "benign malignant", "active inactive", "complete incomplete", "known unknown",
    "same other", "only also", "full empty", "open closed", "start end", "begins ends", "began ended", "started stopped",
    "beneficial harmful", "benefit harm", "protects harms", "hero villain", "fiction nonfiction", "fictional real",
    "solo group", "single married", "domestic foreign", "import export", "buy sell", "bought sold", "arrive depart",
    "opened closed", "opens closes", "appear disappear", "appeared disappeared", "create destroy", "created destroyed",
    "attack defend", "attacked defended", "add remove", "added removed", "enter leave", "entered left", "approve reject",
    "approved rejected", "pass fail", "passed failed", "cheap expensive", "deep shallow", "easy difficult", "near far",
    "guilty innocent", "inside outside", "inner outer", "internal external", "wide narrow", "natural artificial",
    "permanent temporary", "possible impossible", "rural urban", "simple complex", "tall short", "victory defeat",
    "voluntary mandatory", "optional mandatory", "direct indirect", "regular irregular", "significant insignificant",
    "visible invisible", "stable unstable", "necessary unnecessary", "popular unpopular", "related unrelated",
    "certain uncertain", "usual unusual", "healthy unhealthy", "accurate inaccurate", "consistent inconsistent",
    "correct incorrect", "efficient inefficient", "sufficient insufficient", "adequate inadequate", "accelerate slow",
    "accelerated slowed", "strengthen weaken", "strengthens weakens", "strengthened weakened", "raise lower",
    "raises lowers", "raised lowered", "widen narrow", "widened narrowed", "shortened lengthened", "shortens lengthens",
)  # fmt: skip

_SIDES = (
    (
        "increase raise elevate boost heighten enhance augment higher",
        "decrease reduce reduction lower diminish decline attenuate",
    ),
    (
        "promote stimulate encourage activate enhance facilitate induce trigger",
        "inhibit suppress block prevent impair hinder discourage reduce attenuate",
    ),
    ("improve strengthen", "worsen deteriorate impair weaken"),
    ("rise rose risen climb soar grow grew grown", "decrease fall fell fallen drop decline shrink shrank plunge"),
)
"""Words of which each is the opposite of all on the other side."""

_STANCES = (
    "recommendation against", "recommended against", "advice against", "advised against", "urged against", "request against",
    "support against", "support objection", "support protest", "support opposition", "consent objection", "approval objection",
    "recommendation objection", "recommended opposed", "recommended objected", "advised opposed", "urged opposed",
    "welcomed opposed", "welcomed criticised", "praised criticised", "backed opposed", "endorsed opposed", "favoured opposed",
    "defended criticised", "granted refused", "granted denied", "grants refuses", "upheld overturned", "upheld quashed",
    "upheld annulled", "confirmed overturned", "convicted acquitted", "guilty acquitted", "confirmed denied", "imposed lifted",
    "appointed dismissed", "suspended resumed", "tightened loosened", "tightened eased", "ratified rejected",
    "adopted rejected",
    "accepted refused", "accepted declined", "agreed refused", "allowed refused", "allowed prohibited", "permitted prohibited",
    "permitted banned", "permitted refused", "legalised banned", "encouraged discouraged", "profit loss", "surplus deficit",
    "surplus shortage", "outperformed underperformed", "exceeded missed", "survived died", "succeeded failed",
    "introduced abolished", "introduced scrapped", "renewed terminated", "extended shortened", "delayed accelerated",
    "abundant scarce", "frequent rare", "warmer colder", "heavier lighter", "thicker thinner", "optimistic pessimistic",
)  # fmt: skip
"""Opposite stances to something; nothing to put in a word's place, since they take other words around them."""


def _antonyms() -> dict[str, frozenset[str]]:
    antonyms: dict[str, set[str]] = {}
    for pair in _PAIRS:
        first, second = pair.split()
        antonyms.setdefault(first, set()).add(second)
        antonyms.setdefault(second, set()).add(first)
    return {word: frozenset(others) for word, others in antonyms.items()}


ANTONYMS = _antonyms()
"""Words of the opposite meaning, by word."""


@cache
def _opposite_stems() -> dict[str, frozenset[str]]:
    """Return the stems of antonyms by the stems of words, so that every form of a word matches every form of its antonyms."""
    stem = stems_of_language("english").stem
    opposites: dict[str, set[str]] = {}
    for word, others in ANTONYMS.items():
        opposites.setdefault(stem(word), set()).update(map(stem, others))
    sides = (f"{one} {other}" for first, second in _SIDES for one in first.split() for other in second.split())
    for first, second in (map(stem, pair.split()) for pair in (*_STANCES, *sides)):
        opposites.setdefault(first, set()).add(second)
        opposites.setdefault(second, set()).add(first)
    return {word: frozenset(others - {word}) for word, others in opposites.items()}


_AGAINST = re.compile(
    r"\b(?:advis|warn|argu|vot|decid|rul|recommend|campaign|sp[eo]ak|spok|protest|appeal|c[ao]me out)"
    r"\w*\s+(?:\w+\s+){0,2}?against\b"
    r"|\bagainst\s+(?:the\s+)?(?:advice|recommendations?|wish(?:es)?|will|requests?)\b",
    re.IGNORECASE,
)
"""Words that mean the opposite of a recommendation; the verb alone may mean one."""

_CLAUSE = re.compile(r"[,;:()\u2013\u2014]\s|\b(?:although|though|while|whereas|but|because)\b", re.IGNORECASE)


def clauses_of(sentence: str) -> list[str]:
    """Return the clauses of a sentence, as far as commas and conjunctions show them."""
    return [clause for clause in _CLAUSE.split(sentence) if clause.strip()]


_NOT_ONLY = re.compile(r"(?:\bnot|n['\u2019]t)\s(?:only|just|merely|simply)\b", re.IGNORECASE)
_NOT = re.compile(r"not?|never|none|nobody|nothing|neither|nor|cannot|without|n['\u2019]t")
_NEXT = 40


def negations(text: str) -> int:
    """Return the number of negating words in a text; "not only" denies nothing."""
    return len(_negating(text))


def unshared_negations(claim: str, sentence: str) -> tuple[int, int]:
    """Return how many negating words of a claim a sentence lacks, and the other way round.

    A word such as "false" is shared if both have it, a "not" or "without" if the same word follows.
    """
    ours, theirs = set(_negating(claim)), set(_negating(sentence))
    return len(ours - theirs), len(theirs - ours)


def _negating(text: str) -> list[tuple[str, str]]:
    """Return the negating words of a text; of "not" and the like, "not" and the next content word, stemmed."""
    latin = _NOT_ONLY.sub(" only", as_latin(text))
    compares = "without" in latin.lower() and re.search(r"\bwith\b", latin, re.IGNORECASE) is not None
    found: list[tuple[str, str]] = []
    for match in _NEGATION.finditer(latin):
        word = match[0].lower()
        if compares and word == "without":
            continue
        after = stemmed(latin[match.end() : match.end() + _NEXT])
        found.append(("not", after[0] if after else "") if _NOT.fullmatch(word) else ((*stemmed(word), word)[0], ""))
    return found


class Opposites(NamedTuple):
    """The words of a claim, and the opposites of those that have one; by stems, so that all forms match.

    Args:
        said: each word as it is written, by its stem.
        looked_for: the stems of words that have an opposite, in order.
    """

    said: dict[str, str]
    looked_for: list[str]

    @classmethod
    def of(cls, claim: str) -> Opposites:
        """Return those of a claim."""
        stems = _by_stem(claim)
        words = sorted(stems.keys() & _opposite_stems().keys())
        return cls(stems, [word for word in words if stems[word].lower() not in _OTHER_MEANING])

    def nowhere_in(self, sentences: Sequence[str]) -> frozenset[str]:
        """Return the words with an opposite that none of some sentences has."""
        there = frozenset[str]().union(*map(_by_stem, sentences)) if self.looked_for else frozenset[str]()
        return frozenset(self.said[word] for word in self.looked_for if word not in there)

    def met(self, sentence: str) -> list[tuple[str, str]]:
        """Return pairs of a word of the claim and its opposite in a sentence, if the sentence lacks the word."""
        if not self.looked_for:
            return []
        stems, opposites = _by_stem(sentence), _opposite_stems()
        return [
            (self.said[word], stems[other])
            for word in self.looked_for
            if word not in stems
            for other in sorted(opposites[word] & stems.keys() - self.said.keys())
            if stems[other].lower() not in _OTHER_MEANING
        ]


def _by_stem(text: str) -> dict[str, str]:
    stems = stems_of_language("english")
    return {stems.stem(word): word for word in reversed(stems.as_written(_AGAINST.sub("against", text)))}


_OTHER_MEANING = frozenset("activity activities objective objectives underlying".split())
"""Words that share a stem with one that has an opposite (activate, object), and none of its meaning."""


# Things of one kind, of which each excludes the others: "supplemental hydrogen" beside "supplemental oxygen".

_KINDS = (
    "father/fathers mother/mothers brother/brothers sister/sisters uncle aunt nephew niece cousin grandfather "
    "grandmother",
    "oxygen hydrogen helium nitrogen chlorine iron copper zinc calcium sodium potassium magnesium lithium "
    "phosphorus aluminium/aluminum nickel gold silver bronze mercury uranium",
    "mouse/mice/murine rat/rats rabbit/rabbits hamster/hamsters ferret/ferrets monkey/monkeys/macaque/macaques "
    "dog/dogs/canine cat/cats/feline pig/pigs/porcine sheep/ovine cattle/cow/cows/bovine horse/horses/equine "
    "goat/goats chicken/chickens zebrafish",
    "obesity/obese/overweight diabetes/diabetic asthma/asthmatic hypertension/hypertensive epilepsy/epileptic "
    "depression/depressive/depressed schizophrenia/schizophrenic tuberculosis malaria pneumonia influenza/flu "
    "hepatitis dementia/alzheimer stroke/strokes arthritis osteoporosis autism/autistic anorexia leukemia/leukaemia "
    "lymphoma melanoma",
    "heart/cardiac/coronary liver/hepatic kidney/kidneys/renal lung/lungs/pulmonary brain/cerebral stomach/gastric "
    "skin bladder breast/mammary prostate colon/colorectal/colonic pancreas/pancreatic ovary/ovarian "
    "cervix/cervical thyroid",
    "novel/novels/book/books film/films/movie/movies poem/poems opera/operas musical/musicals painting/paintings",
    "guitar/guitarist piano/pianist violin/violinist drums/drummer trumpet/trumpeter cello/cellist flute/flautist "
    "saxophone",
    "red blue green yellow purple pink brown",
    "football/soccer/footballer basketball baseball tennis hockey cricket/cricketer rugby golf/golfer volleyball "
    "boxing/boxer",
    "bacteria/bacterial/bacterium virus/viruses/viral fungus/fungal/fungi parasite/parasites/parasitic",
    "wheat barley rice maize/corn oats soy/soybean/soybeans potato/potatoes",
    "coal petroleum solar nuclear hydroelectric geothermal",
    "actor/actress/actors/actresses singer/singers/vocalist dancer/dancers painter/painters poet/poets journalist/journalists "
    "lawyer/lawyers architect/architects engineer/engineers physicist/physicists chemist/chemists philosopher/philosophers",
    "president/presidents minister/ministers governor/governors mayor/mayors senator/senators king/kings queen/queens bishop",
    "macrophage/macrophages neutrophil/neutrophils lymphocyte/lymphocytes monocyte/monocytes eosinophil/eosinophils "
    "platelet/platelets erythrocyte/erythrocytes",
    "insulin glucagon cortisol testosterone estrogen/oestrogen progesterone dopamine serotonin adrenaline melatonin",
    "aspirin ibuprofen paracetamol/acetaminophen metformin warfarin morphine penicillin",
    "hydroxychloroquine/chloroquine ivermectin remdesivir favipiravir tocilizumab dexamethasone",
    "bone/bones muscle/muscles tendon/tendons cartilage nerve/nerves",
    "knee/knees shoulder/shoulders hip/hips ankle/ankles elbow/elbows wrist/wrists",
    "cough fever headache/headaches nausea diarrhea/diarrhoea fatigue",
    "bat/bats pangolin/pangolins camel/camels civet/civets mink/minks",
    "mosquito/mosquitoes tick/ticks flea/fleas ant/ants bee/bees butterfly/butterflies spider/spiders beetle/beetles",
    "spring summer/summers autumn winter/winters",
    "morning/mornings afternoon/afternoons evening/evenings",
    "comedy/comedies thriller/thrillers horror",
    "physics chemistry biology mathematics economics psychology",
    "wood/wooden steel concrete brick/bricks plastic marble",
    "coffee tea beer wine milk vodka whisky",
    "apple/apples orange/oranges banana/bananas grape/grapes lemon/lemons",
    "euro/euros dollar/dollars pound/pounds yen",
    "army navy",
    "bus/buses tram/trams ferry/ferries bicycle/bicycles/bike/bikes car/cars aeroplane/airplane/aircraft ship/ships",
)  # fmt: skip


@cache
def _things() -> dict[str, tuple[frozenset[str], frozenset[str]]]:
    """Return the forms of a thing and those of the others of its kind, by each of its forms, stemmed."""
    found: dict[str, tuple[frozenset[str], frozenset[str]]] = {}
    for kind in _KINDS:
        things = [frozenset(stemmed(thing.replace("/", " "))) for thing in kind.split()]
        for thing in things:
            found |= dict.fromkeys(thing, (thing, frozenset().union(*things) - thing))
    return found


class Replaced(NamedTuple):
    """A word of a claim that a passage lacks, which has another of its kind; and whether that has the same word beside it."""

    word: str
    in_place: bool


_OF_TEXTS = frozenset("table figure fig page section part article chapter".split())
"""Things that a text has numbers for, whatever it is about."""


def _next_words(text: str, things: Iterable[tuple[int, int]]) -> set[str]:
    """Return the next content word after each of some spans, stemmed."""
    return {word for _, end in things for word in stemmed(text[end : end + _NEXT])[:1]}


def replaced_things(claim: str, passage: str) -> list[Replaced]:
    """Return the things of a claim that a passage lacks, if it has another of the kind, and none that the claim has."""
    numbered, others_there = numbered_things(claim), numbered_things(passage)
    kinds = {kind for kind, _ in others_there} - {kind for kind, _ in numbered.keys() & others_there.keys()} - _OF_TEXTS
    next_there = _next_words(passage, others_there.values()) if kinds else set[str]()
    found = [
        Replaced(claim[slice(*span)], not next_there.isdisjoint(_next_words(claim, [span])))
        for (kind, _), span in numbered.items()
        if kind in kinds
    ]
    stems = stemmed(claim)
    said = {stem: number for number, stem in enumerate(stems) if stem in _things()}
    if not said:
        return found
    words = [word for word in words_of(claim) if word not in FUNCTION_WORDS]
    there = ["", *stemmed(passage), ""]
    beside = ["", *stems, ""]
    for stem, number in said.items():
        thing, others = _things()[stem]
        others = others.intersection(there)
        if others and others.isdisjoint(stems) and thing.isdisjoint(there):
            before, after = beside[number], beside[number + 2]
            places = [place for place, other in enumerate(there) if other in others]
            in_place = any(there[place - 1] == before != "" or there[place + 1] == after != "" for place in places)
            found.append(Replaced(words[number], in_place))
    return found
