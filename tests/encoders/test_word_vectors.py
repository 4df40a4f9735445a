"""Word vectors: files of others, files of our own, training, and texts whose words are not known."""

from __future__ import annotations

import json
import math
import os
import pickle
import struct
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from gensim.models import KeyedVectors

from nlp_retrieval import SearchableItem, WordVectorEncoder
from nlp_retrieval.encoders import train_word_vectors
from nlp_retrieval.encoders.word_vectors import read_word_vectors, write_word_vectors
from nlp_retrieval.errors import ModelError, RetrievalWarning

WORDS = ["the", "wind", "power", "łódź"]
VECTORS = np.array([[1, 0, 0], [0, 2, 0], [0, 0, 3], [1, 1, 1]], np.float32)


def text_lines():
    return "".join(f"{word} {' '.join(map(str, row))}\n" for word, row in zip(WORDS, VECTORS.tolist(), strict=True))


@pytest.fixture
def glove(tmp_path):
    file = tmp_path / "glove.txt"
    file.write_text(text_lines(), "utf-8")
    return file


@pytest.fixture(params=["glove", "word2vec text", "word2vec binary", "folder"])
def source(request, tmp_path, glove):
    """The same vectors in every form."""
    if request.param == "glove":
        return glove
    path = tmp_path / "vectors"
    if request.param == "folder":
        ranks = np.arange(1, 5)
        write_word_vectors(path, WORDS, VECTORS, np.log(ranks * (1 / ranks).sum() + 1))
    elif request.param == "word2vec text":
        path = path.with_suffix(".vec")
        path.write_text(f"4 3\n{text_lines()}", "utf-8")
    else:
        path = path.with_suffix(".bin")
        rows = [word.encode() + b" " + struct.pack("<3f", *row) for word, row in zip(WORDS, VECTORS.tolist(), strict=True)]
        path.write_bytes(b"4 3\n" + b"".join(rows))
    return path


def test_a_text_is_the_mean_of_its_words_by_how_rare_they_are(source):
    """By hand: "wind" is the 2nd word of 4, "power" the 3rd; p(r) = 1 / (r H), H = 1 + 1/2 + 1/3 + 1/4; weight ln(r H + 1)."""
    harmonic = 1 + 1 / 2 + 1 / 3 + 1 / 4
    mean = np.array([0, 2 * math.log(2 * harmonic + 1), 3 * math.log(3 * harmonic + 1)])
    (vector,) = WordVectorEncoder(str(source)).encode_passages(["Wind POWER, unknownword"])
    assert vector == pytest.approx(mean / np.linalg.norm(mean), abs=1e-6)


def test_a_text_without_a_known_word_has_no_vector_and_that_is_said_once(source):
    encoder = WordVectorEncoder(str(source))
    with pytest.warns(RetrievalWarning, match=r"1 of 3 texts have no word with a vector, .*the first: 'qwertz'"):
        vectors = encoder.encode_passages(["qwertz", "", "wind"])
    assert not vectors[:2].any()
    assert vectors[2].any()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        encoder.encode_passages(["qwertz"])


def test_binary_files_of_any_size_are_read_as_gensim_reads_them(tmp_path_factory: pytest.TempPathFactory, subtests):
    for end in [b"", b"\n"]:
        with subtests.test(end=end):
            tmp_path = tmp_path_factory.mktemp("case")
            n_words, dimension = 3000, 200  # larger than what is read at a time
            vectors = np.random.default_rng(0).normal(size=(n_words, dimension)).astype("<f4")
            words = [f"w{row}é" for row in range(n_words)]
            pairs = [word.encode() + b" " + row.tobytes() + end for word, row in zip(words, vectors, strict=True)]
            path = tmp_path / "vectors.bin"
            path.write_bytes(b"%d %d\n" % (n_words, dimension) + b"".join(pairs))
            expected = KeyedVectors.load_word2vec_format(str(path), binary=True)
            read = read_word_vectors(path)
            assert list(read.numbers) == expected.index_to_key
            assert np.array_equal(read.vectors, expected.vectors)


class Harmful:
    def __reduce__(self):
        return os.mkdir, ("harmed",)


def test_a_pickle_is_refused_and_not_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    name = "vectors.bin"
    (tmp_path / name).write_bytes(pickle.dumps(Harmful()))
    with pytest.raises(ModelError, match=r"is a pickle, which could run any code.*save_word2vec_format"):
        WordVectorEncoder(name).encode_queries(["a"])
    assert not (tmp_path / "harmed").exists()


def test_a_file_that_is_none_is_refused(tmp_path_factory: pytest.TempPathFactory, subtests):
    for name, content, message in [
        ("a.bin", b"400 300\nthe ", "has only 12 bytes"),
        ("a.bin", b"2 1\nthe \0\0\0\0wind \0\0", "it ends within word 2 of 2"),
        ("a.txt", b"2 2\n1990 1\nwind 1 2\n", "line 2 has not 2 numbers after a word"),
        ("a.txt", b"the 1 2 3\nwind 1 2\n", "line 2 has not 3 numbers after a word"),
        ("a.txt", b"3 2\nthe 1 2\nwind 1 2\n", "says that it holds 3 words, and holds 2"),
        ("a.txt", b"", "and holds 0"),
        ("a.txt", b"the nan 2 3\n", "is not finite"),
    ]:
        with subtests.test(name=name, content=content, message=message):
            tmp_path = tmp_path_factory.mktemp("case")
            (tmp_path / name).write_bytes(content)
            with pytest.raises(ModelError, match=message):
                read_word_vectors(tmp_path / name)


def test_a_folder_that_was_changed_is_refused(tmp_path_factory: pytest.TempPathFactory, subtests):
    for change, message in [
        ({"format": 2}, "made by another version"),
        ({"words": ["a", "a"]}, "distinct words"),
        ({"idf": [0, 1]}, "idf above 0"),
        ({"vectors": "0" * 64}, "is not what words.json was written with"),
        ({"stemmer": "english", "phrases": ["one"]}, "no whole file"),
    ]:
        with subtests.test(change=change, message=message):
            tmp_path = tmp_path_factory.mktemp("case")
            write_word_vectors(tmp_path, ["a", "b"], np.ones((2, 3), np.float32), [1.0, 2.0])
            content = json.loads((tmp_path / "words.json").read_text("utf-8"))
            (tmp_path / "words.json").write_text(json.dumps(content | change), "utf-8")
            with pytest.raises(ModelError, match=message):
                read_word_vectors(tmp_path)


# training


def corpus(n=60):
    pairs = [("wind", "turbine"), ("coal", "mine"), ("flood", "river")]
    texts = [f"{one} {two} {one} {two} with x{number % 7}" for number in range(n) for one, two in [pairs[number % 3]]]
    return [SearchableItem(item_id=str(number), content=text) for number, text in enumerate(texts)]


def test_words_that_stand_together_are_alike(tmp_path):
    n_words = train_word_vectors(corpus(300), tmp_path, dimension=16)
    encoder = WordVectorEncoder(str(tmp_path))
    wind, turbine, coal, flood = encoder.encode_queries(["wind", "turbine", "coal", "flood"])
    assert n_words == 14
    assert wind @ turbine > max(wind @ coal, wind @ flood)


PLANS = [
    "The nationally determined contribution (NDC) of Ostland lists emissions targets.",
    "Ile has an NDC; its nationally determined contribution lists emissions targets too.",
    "The river floods the town, and who repairs the dike is unknown.",
]


def test_stems_and_abbreviations_that_are_defined_are_one_word(tmp_path):
    items = [SearchableItem(item_id=str(number), content=text) for number, text in enumerate(PLANS * 20)]
    train_word_vectors(items, tmp_path, dimension=16, language="english")
    encoder = WordVectorEncoder(str(tmp_path))
    forms = encoder.encode_queries(
        ["NDC", "NDCs", "Nationally Determined Contributions", "emission target", "emissions targets"]
    )
    assert np.array_equal(forms[0], forms[1])
    assert np.array_equal(forms[0], forms[2])
    assert np.array_equal(forms[3], forms[4])
    assert not np.array_equal(forms[0], forms[3])


def test_the_same_corpus_gives_the_same_bytes_whatever_the_hash_seed(tmp_path):
    script = (
        "import sys; sys.path.insert(0, sys.argv[2]); from encoders.test_word_vectors import corpus\n"
        "from nlp_retrieval.encoders import train_word_vectors\n"
        "train_word_vectors(corpus(), sys.argv[1], dimension=8)"
    )
    tests = str(Path(__file__).parents[1])
    for seed in ("1", "2"):
        environment = os.environ | {"PYTHONHASHSEED": seed}
        subprocess.run([sys.executable, "-c", script, str(tmp_path / seed), tests], check=True, env=environment, timeout=300)
    for name in ("vectors.npy", "words.json"):
        assert (tmp_path / "1" / name).read_bytes() == (tmp_path / "2" / name).read_bytes()
