"""What plain words amount to: what is to be done with what, and what is not understood."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelskill.schema.proposal import Skill
from kernelskill.session.clauses import is_question
from kernelskill.session.vocabulary import Vocabulary, stems, vocabulary_of
from kernelskill.session.wording import Wish, read_wish
from kernelskill.skills.library import SkillLibrary, default_folders

KERNELS = ("foo", "means", "transpose")
SKILLS = SkillLibrary.load(default_folders(Path("/nonexistent"))).all()
VOCABULARY: Vocabulary = vocabulary_of(SKILLS, KERNELS)


def short(wish: Wish) -> str:
    where = f" in {','.join(wish.kernels)}" if wish.kernels else ""
    value = f" {wish.value}" if wish.value else ""
    return f"{wish.action} {'+'.join(topic.name for topic in wish.topics)}{value}{where}"


def wished(text: str) -> set[str]:
    """Skills that a wish speaks of, where all of it is understood."""
    reading = read_wish(text, VOCABULARY)
    found = {skill for wish in reading.wishes for topic in wish.topics for skill in topic.skills}
    return set() if reading.unknown else found


def understood(text: str) -> list[str]:
    return [short(wish) for wish in read_wish(text, VOCABULARY).wishes]


@pytest.mark.parametrize(
    ("text", "wishes"),
    [
        ("leave shared memory alone", ["ban shared memory"]),
        ("Leave SMEM alone!", ["ban shared memory"]),
        ("don't use __shared__", ["ban shared memory"]),
        ("do not leave shared memory alone", ["allow shared memory"]),
        ("shared memory is off limits", ["ban shared memory"]),
        ("no tensor-cores", ["ban tensor cores"]),
        ("no wmma, please", ["ban tensor cores"]),
        ("no shared memory, tensor cores or unrolling", ["ban shared memory", "ban tensor cores", "ban unrolling"]),
        ("leave shared memory and tensor cores alone", ["ban shared memory", "ban tensor cores"]),
        ("try bigger tiles", ["larger tiles"]),
        ("more work per thread", ["larger work per thread"]),
        ("let each thread do more", ["larger work per thread"]),
        ("each thread should compute several outputs", ["larger work per thread"]),
        ("ban everything", ["ban any skill"]),
        ("allow everything again", ["allow any skill"]),
        ("everything but tensor cores", ["ban tensor cores"]),
        ("try bigger tiles\nno shared memory\n", ["larger tiles", "ban shared memory"]),
        ("try bigger tiles, and then registers, but please leave the shared\nmemory alone",
         ["larger tiles", "prefer registers 2", "ban shared memory"]),
        ("- registers first\n- no atomics", ["prefer registers 1", "ban atomics"]),
        ("inner points first", ["prefer inner points 1"]),
        ("peel the borders", ["prefer inner points 1"]),
        ("skip border tests", ["prefer border tests 1"]),
        ("no boundary checks", ["prefer border tests 1"]),
        ("no prefix sums, please", ["ban running sums"]),
        ("use fma", ["prefer fused multiply-add 1"]),
        ("split the reduction", ["prefer split reductions 1"]),
        ("double buffer it", ["prefer prefetching 1"]),
        ("at most 8 warps", ["at_most warps 8"]),
        ("make the tile smaller", ["smaller tiles"]),
        ("unroll more", ["larger unrolling"]),
        ("fewer threads", ["smaller the block shape"]),
        ("registers first", ["prefer registers 1"]),
        ("registers first, then shared memory, then tiles",
         ["prefer registers 1", "prefer shared memory 2", "prefer tiles 3"]),
        ("shared memory and registers first", ["prefer shared memory 1", "prefer registers 1"]),
        ("shared memory last", ["later shared memory"]),
        ("do not start with unrolling", ["later unrolling"]),
        ("use registers instead of shared memory", ["prefer registers 1", "later shared memory"]),
        ("prefer float4 over shared memory", ["prefer vector accesses 1", "later shared memory"]),
        ("no shared memory but registers", ["ban shared memory", "prefer registers 1"]),
        ("vectorise the loads, don't unroll", ["prefer vector accesses 1", "ban unrolling"]),
        ("only the memory specialist", ["only the memory specialist"]),
        ("nothing but registers", ["only registers"]),
        ("only registers and tiles", ["only registers+tiles"]),
        ("anything but tensor cores", ["ban tensor cores"]),
        ("tiles of at most 32", ["at_most tiles 32"]),
        ("tile size <= 32", ["at_most tiles 32"]),
        ("tiles below 64", ["at_most tiles 63"]),
        ("tiles between 16 and 64", ["at_least tiles 16", "at_most tiles 64"]),
        ("do not use more than 256 threads", ["at_most the block shape 256"]),
        ("no unroll factor above 4", ["at_most unrolling 4"]),
        ("128 threads or less per block", ["at_most the block shape 128"]),
        ("tiles 64 x 64", ["exactly tiles 64x64"]),
        ("unroll by 4", ["exactly unrolling 4"]),
        ("bigger tiles for tensor cores", ["larger tiles"]),
        ("don't touch kernel foo", ["ban the kernel foo"]),
        ("hands off foo", ["ban the kernel foo"]),
        ("never touch the transpose kernel", ["ban the kernel transpose"]),
        ("only change kernel means", ["only the kernel means"]),
        ("don't unroll in foo", ["ban unrolling in foo"]),
        ("avoid bank conflicts in shared memory", ["prefer bank conflicts 1"]),
        ("get rid of the divergent branches", ["prefer divergence 1"]),
        ("ban memory/shared_tile", ["ban shared_tile"]),
        ("can you leave shared memory alone?", ["ban shared memory"]),
        ("don\u2019t use shared\u00a0memory", ["ban shared memory"]),
        ("allow shared memory again", ["allow shared memory"]),
        ("no more unrolling", ["ban unrolling"]),
        ("no more than 4x unrolling", ["at_most unrolling 4"]),
        ("tiles should be 32 or 64", ["exactly tiles 32|64"]),
        ("in kernel foo, no shared memory", ["ban shared memory in foo"]),
        ("prefer unrolling to tiling", ["prefer unrolling 1", "later tiles"]),
        ("SHARED MEMORY: NO!!!", ["ban shared memory"]),
        ("no smem/tensor cores", ["ban shared memory", "ban tensor cores"]),
        ("fp16 is ok", ["allow half precision"]),
        ("fast math is not allowed", ["ban fast math"]),
        ("everything but foo", ["ban the kernel foo"]),
        ("threads at least 64 and at most 256", ["at_least the block shape 64", "at_most the block shape 256"]),
        ("tiles from 16 to 32", ["at_least tiles 16", "at_most tiles 32"]),
    ],
)  # fmt: skip
def test_many_spellings_are_understood(text: str, wishes: list[str]) -> None:
    reading = read_wish(text, VOCABULARY)
    assert ([short(wish) for wish in reading.wishes], reading.unknown) == (wishes, ())
    assert not is_question(text, VOCABULARY)


@pytest.mark.parametrize(
    "text",
    [
        "leave sharde memory alone",
        "use shared memory only if tiles fit",
        "shared memory at most 16 KB",
        "no bigger tiles",
        "kein shared memory",
        "tiles before registers",
        "don't touch kernel bar",
        "\u5148\u8bd5\u8bd5\u5bc4\u5b58\u5668",
        "make it fast",
        "use at most 32 registers",
        "not exactly 32 tiles",
        "50% smaller",
        "tiles at most 32 or 64",
        "fewer blocks",
        "tiles from 64 to 32",
        "I think shared memory is a bad idea",
        "unroll the innermost loop by 4",
        "limit registers to 64",
    ],
)
def test_what_may_mean_something_else_is_not_taken(text: str) -> None:
    reading = read_wish(text, VOCABULARY)
    assert reading.wishes == ()
    assert reading.unknown != ()


def test_a_part_that_is_not_understood_does_not_spoil_the_rest() -> None:
    reading = read_wish("no shared memory; and glimmer the frobnicator, unroll more", VOCABULARY)
    assert [short(wish) for wish in reading.wishes] == ["ban shared memory", "larger unrolling"]
    assert reading.unknown == ("glimmer the frobnicator",)


@pytest.mark.parametrize(
    ("text", "asks"),
    [
        ("why is it slow?", True),
        ("why is it slow", True),
        ("What would tiling bring?", True),
        ("what about bigger tiles", True),
        ("should we use shared memory?", True),
        ("\u00bfqu\u00e9 lo limita?", True),
        ("\u4e3a\u4ec0\u4e48\u6162\uff1f", True),
        ("could we try bigger tiles?", False),
        ("do not unroll", False),
        ("island of tiles first", False),
        ("whatever, tiles first", False),
    ],
)
def test_questions_are_told_from_wishes(text: str, asks: bool) -> None:
    assert is_question(text, VOCABULARY) is asks


@settings(max_examples=50)
@given(st.text(max_size=80))
def test_any_text_can_be_read(text: str) -> None:
    reading = read_wish(text, VOCABULARY)
    assert all(wish.topics for wish in reading.wishes)
    is_question(text, VOCABULARY)


words = sorted(
    {word for phrase in VOCABULARY.phrases for word in phrase} | {"32", "16x16", "foo", "if", "xyz"}
)


@settings(max_examples=50)
@given(st.lists(st.sampled_from(words), max_size=9))
def test_any_order_of_known_words_can_be_read(found: list[str]) -> None:
    reading = read_wish(" ".join(found), VOCABULARY)
    for wish in reading.wishes:
        assert wish.topics
        if wish.action in ("at_most", "at_least", "exactly"):
            assert wish.value
            assert all(topic.parameters for topic in wish.topics)


def test_every_topic_has_skills_of_the_library() -> None:
    without = [topic.name for topic in VOCABULARY.topics if not topic.skills]
    assert without == []


@pytest.mark.parametrize("skill", SKILLS, ids=lambda skill: skill.id)
def test_every_skill_is_reached_by_a_wish_and_by_its_name(skill: Skill) -> None:
    directions = [t for t in VOCABULARY.topics if skill.id in t.skills and not (t.limits or t.specialists)]
    reached = [t.name for t in directions if all(wished(f"try {word}") >= {skill.id} for word in t.words)]
    assert reached, (
        f"no wish in plain words leads to {skill.id!r}: in kernelskill/session/vocabulary.toml add its id to the "
        "`skills` of every [[topic]] that it is about, or add a topic with the words that an engineer would use"
    )
    short = skill.id.rsplit("/", 1)[-1]
    for name in (skill.id, short, short.replace("_", " "), short.replace("_", "-")):
        for wish in ("try {}", "{} first", "no {}", "only {}", "leave {} alone"):
            assert skill.id in wished(wish.format(name)), (
                f"{wish.format(name)!r} does not lead to {skill.id!r}: other words of vocabulary.toml take it"
            )


def test_every_parameter_of_numbers_is_spoken_of() -> None:
    spoken = {name for topic in VOCABULARY.topics for name in topic.parameters}
    of_skills = {p.name for s in SKILLS for p in s.parameters if all(v[0].isdigit() for v in p.values)}
    missing = of_skills - spoken - {"bins"}
    assert not missing, (
        f"add {missing} to the `parameters` of a [[topic]] in kernelskill/session/vocabulary.toml"
    )


def test_the_words_of_a_topic_lead_to_it() -> None:
    lost = [
        (topic.name, word)
        for topic in VOCABULARY.topics
        for word in topic.words
        if (found := VOCABULARY.phrases[stems(word)]).topic is None or found.topic.name != topic.name
    ]
    assert lost == []
