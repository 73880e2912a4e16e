import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from kernelskill.errors import ConfigError, KernelSkillError, UsageError
from kernelskill.llm.address import parse_address
from kernelskill.llm.base import Message, ModelAnswer, ModelFailure, ModelRequest, Pending
from kernelskill.llm.keys import NO_KEY, Key, find_key
from kernelskill.llm.models import absolute_spec, open_model, price_of
from kernelskill.llm.patience import Patience, patience_from
from kernelskill.llm.prices import find_price
from kernelskill.llm.scripted import ScriptedModel
from kernelskill.llm.shape import is_strict
from kernelskill.llm.tokens import estimate_text, estimate_tokens


def request(role: str = "memory", text: str = "x") -> ModelRequest:
    return ModelRequest(role=role, messages=(Message(role="user", text=text),))


@pytest.mark.parametrize(
    ("text", "variable", "model", "url", "at_home"),
    [
        ("gpt-5", "", "gpt-5", "https://api.openai.com/v1", False),
        ("gpt-5", "http://localhost:1/v1/", "gpt-5", "http://localhost:1/v1", True),
        ("llama3:8b@http://box:11434/v1", "http://other/v1", "llama3:8b", "http://box:11434/v1", True),
        ("a/b@2024@https://host.example/v1", "", "a/b@2024", "https://host.example/v1", False),
        ("m@http://10.0.0.7:8000/v1", "", "m", "http://10.0.0.7:8000/v1", True),
        ("m@http://[::1]:8000/v1", "", "m", "http://[::1]:8000/v1", True),
        ("m@HTTPS://Host.Example/v1", "", "m", "HTTPS://Host.Example/v1", False),
    ],
)
def test_addresses(text: str, variable: str, model: str, url: str, at_home: bool) -> None:
    found = parse_address(text, {"OPENAI_BASE_URL": variable})
    assert (found.model, found.url, found.at_home) == (model, url, at_home)


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ("", "'' is no model"),
        ("gpt-5", "'gpt-5' is no model"),
        ("openai:", "'openai:' is no model"),
        ("none:x", "'none:x' is no model"),
        ("mailbox:", "'mailbox:' is no model"),
        ("magic:x", "'magic:x' is no model"),
        ("openai:@http://localhost/v1", "has no name"),
        ("openai:a b", "names no model"),
        ("openai:m@localhost:8000/v1", "is no http or https URL"),
        ("openai:m@ftp://host/v1", "is no http or https URL"),
        ("openai:m@http://", "is no http or https URL"),
        ("openai:m@http://host:port/v1", "cannot be read as a URL"),
        ("openai:m@http://host:99999/v1", "cannot be read as a URL"),
        ("openai:m@http://host/v1?key=1", "after '?' or '#'"),
        ("record:file", "names no file or no model"),
        ("record:x.jsonl:none", "records no model"),
        ("record:x.jsonl:magic:y", "'magic:y' is no model"),
        ("scripted:missing.yaml", "cannot read the script"),
        ("replay:missing.jsonl", "there is no recording"),
    ],
)
def test_wrong_spellings_are_one_line_with_a_remedy(
    spec: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError) as caught:
        open_model(spec)
    assert says in caught.value.message
    assert caught.value.remedy
    assert "\n" not in caught.value.message + caught.value.remedy


def test_a_password_in_a_url_is_refused_and_not_shown() -> None:
    with pytest.raises(UsageError, match="holds a user name or password") as caught:
        open_model("openai:m@https://me:hunter2hunter2@host.example/v1")
    assert "hunter2" not in caught.value.message + caught.value.remedy + repr(caught.value)


def test_naming_a_model_does_not_load_a_client() -> None:
    code = (
        "import sys; from kernelskill.llm.models import open_model; open_model('none');"
        "print(sorted({'openai', 'httpx2', 'tenacity', 'keyring'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_none_is_no_model() -> None:
    assert open_model("none") is None


def test_a_key_is_not_sent_in_clear_through_the_world(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-planted-0123456789")
    with pytest.raises(UsageError, match="would travel unencrypted to host"):
        open_model("openai:m@http://host.example/v1")


def test_keys_come_from_the_environment_and_hide() -> None:
    secret = "sk-planted-0123456789-abcdef"
    key = find_key("host", {"OPENAI_API_KEY": f" {secret}\n"})
    assert key.reveal() == secret
    assert secret not in repr(key) + str(key) + f"{key}"
    assert find_key("host", {"OPENAI_API_KEY": "a" * 9, "KERNELSKILL_API_KEY": "b" * 9}).reveal() == "b" * 9
    assert find_key("host", {"OPENAI_API_KEY": ""}) is NO_KEY
    with pytest.raises(TypeError, match="not written"):
        __import__("pickle").dumps(key)


@pytest.mark.parametrize(
    ("body", "shown"),
    [
        ("return 'sk-of-' + service + '-' + user", "Key from the keyring sk-of-kernelskill-host.example"),
        ("raise errors.KeyringError('locked')", "Key from nowhere"),
        ("raise ModuleNotFoundError('no backend')", "Key from nowhere"),
        ("return None", "Key from nowhere"),
    ],
)
def test_a_keyring_is_asked_where_there_is_one(tmp_path: Path, body: str, shown: str) -> None:
    package = tmp_path / "keyring"
    package.mkdir()
    (package / "errors.py").write_text("class KeyringError(Exception):\n    pass\n")
    (package / "__init__.py").write_text(
        f"from keyring import errors\n\ndef get_password(service, user):\n    {body}\n"
    )
    code = "from kernelskill.llm.keys import find_key as f; k = f('host.example', {}); print(k, k.reveal())"
    path = os.pathsep.join([str(tmp_path), *sys.path])
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": path},
    )
    assert done.stdout.strip() == shown


@pytest.mark.parametrize("secret", ["two words here", "sk-\u00fcber", "sk-\x07bell"])
def test_what_is_no_key_is_refused_and_not_shown(secret: str) -> None:
    with pytest.raises(ConfigError, match="OPENAI_API_KEY holds spaces or characters") as caught:
        find_key("host", {"OPENAI_API_KEY": secret})
    assert secret not in str(caught.value)


def test_every_piece_of_a_key_is_taken_out_of_messages() -> None:
    key = Key("sk-planted-0123456789-abcdef", "a test")
    assert key.clean_message("got sk-planted-0123456789-abcdef.") == "got [key]."
    assert key.clean_message("got sk-plant... and ...9-abcdef") == "got [key]... and ...[key]"
    assert key.clean_message("nothing here") == "nothing here"
    assert key.clean_answer("int a; // sk-planted-0123456789-abcdef") == "int a; // [key]"
    assert Key("EMPTY", "a test").clean_answer("EMPTY lines") == "EMPTY lines"
    assert NO_KEY.clean_message("as it is") == "as it is"


def test_scripts_answer_by_role_in_order_and_by_digest(tmp_path: Path) -> None:
    special = request("memory", "special")
    entries = [
        {"role": "memory", "text": "one"},
        {"role": "memory", "answer": {"b": 1, "a": 2}},
        {"request": special.digest[:10], "text": "for this one"},
        {"role": "compute", "failure": {"kind": "refusal", "message": "no"}},
        {"role": "compute", "pending": True},
        {"role": "*", "text": "for all", "repeat": True, "truncated": True},
    ]
    path = tmp_path / "script.json"
    path.write_text(json.dumps({"answers": entries}))
    model = ScriptedModel(path)
    first, second = request(text="1"), request(text="2")
    replies = model.ask([first, special, second, first, request(text="3"), request(text="4")])
    texts = [reply.text for reply in replies if isinstance(reply, ModelAnswer)]
    assert texts == ["one", "for this one", '{"a":2,"b":1}', "one", "for all", "for all"]
    failed, pending, after = (model.ask([request("compute", text)])[0] for text in "abc")
    assert isinstance(failed, ModelFailure)
    assert failed.kind == "refusal"
    assert isinstance(pending, Pending)
    assert isinstance(after, ModelAnswer)
    assert after.truncated


def test_a_script_that_has_run_out_says_what_to_add(tmp_path: Path) -> None:
    path = tmp_path / "script.yaml"
    path.write_text("answers: []\n")
    (reply,) = ScriptedModel(path).ask([request()])
    assert isinstance(reply, ModelFailure)
    assert "has no answer left for role 'memory'" in reply.message
    assert "role: memory" in reply.remedy


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("answers: [", "cannot be parsed"),
        ("- a", "the file"),
        ("answers: [{text: x}]", "needs either `role` or `request`"),
        ("answers: [{role: a}]", "needs one of `text`"),
        ("answers: [{role: a, text: x, pending: true}]", "needs one of `text`"),
        ("answers: [{request: abc, text: x}]", "at least 8 digits"),
        ("answers: [{role: a, txt: x}]", "Extra inputs"),
        ("answers: [{role: a, failure: {kind: mood}}]", "Input should be"),
    ],
)
def test_wrong_scripts_are_refused(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "script.yaml"
    path.write_text(text)
    with pytest.raises(UsageError) as caught:
        ScriptedModel(path)
    assert says in caught.value.message
    assert "\n" not in caught.value.message


def test_prices_are_dated_and_the_users_own_go_first(home: Path) -> None:
    shipped = find_price("gpt-5-mini", "api.openai.com", at_home=False)
    assert shipped is not None
    assert shipped.date
    assert shipped.source.startswith("https://")
    assert find_price("gpt-5-mini-2026-08-07", "api.openai.com", at_home=False) == shipped
    assert find_price("gpt-5-mini", "resold.example", at_home=False) is None
    own = home / "config" / "kernelskill" / "prices.toml"
    own.parent.mkdir()
    own.write_text('["gpt-5-mini"]\ninput = 7\noutput = 8\ndate = "d"\nsource = "my contract"\n')
    found = find_price("gpt-5-mini", "resold.example", at_home=False)
    assert found is not None
    assert found.input == 7
    own.write_text('["gpt-5-mini"]\ninput = -1\noutput = 8\ndate = "d"\nsource = "s"\n')
    with pytest.raises(ConfigError, match="'gpt-5-mini' input"):
        find_price("gpt-5-mini", "api.openai.com", at_home=False)
    own.write_text("oops")
    with pytest.raises(ConfigError, match=r"prices\.toml"):
        find_price("gpt-5-mini", "api.openai.com", at_home=False)


@pytest.mark.parametrize(
    ("spec", "cost"),
    [
        ("mailbox:d", 0.0),
        ("scripted:f", 0.0),
        ("openai:m@http://localhost/v1", 0.0),
        ("record:f:openai:m@http://localhost/v1", 0.0),
        ("openai:unheard-of@https://host.example/v1", None),
    ],
)
def test_prices_by_spelling(spec: str, cost: float | None, home: Path) -> None:
    price = price_of(spec)
    assert (None if price is None else price.input) == cost


def test_spellings_become_absolute(tmp_path: Path) -> None:
    assert absolute_spec("mailbox:mail", tmp_path) == f"mailbox:{tmp_path / 'mail'}"
    assert absolute_spec("record:r:scripted:../s", tmp_path / "a") == (
        f"record:{tmp_path / 'a' / 'r'}:scripted:{tmp_path / 's'}"
    )
    assert absolute_spec("openai:a/b", tmp_path) == "openai:a/b"
    assert absolute_spec("none", tmp_path) == "none"


def test_patience_from_the_environment() -> None:
    found = patience_from({"KERNELSKILL_MODEL_PARALLEL": "9", "KERNELSKILL_MODEL_TIMEOUT": "7200"})
    assert (found.parallel, found.silence_s, found.answer_s) == (9, 7200, 7200)
    assert patience_from({}) == Patience()
    for text in ("0", "-1", "many", "1e3", "\u00b2"):
        with pytest.raises(KernelSkillError, match="KERNELSKILL_MODEL_PARALLEL is"):
            patience_from({"KERNELSKILL_MODEL_PARALLEL": text})


def test_estimates_are_not_low() -> None:
    # 3.2 bytes a token is what byte-pair vocabularies make of CUDA source; 4 of English.
    source = Path(__file__).read_text()
    assert estimate_text(source) > len(source.encode()) / 3.2
    assert estimate_text("") == 0
    assert estimate_tokens(request(text=source)) > estimate_text(source)


def test_digests_tell_requests_apart_and_samples_too() -> None:
    one = request()
    assert one.digest == request().digest
    others = [
        one.model_copy(update=change)
        for change in ({"sample": 1}, {"temperature": 0.5}, {"max_output_tokens": 5}, {"prompt_digest": "x"})
    ]
    assert len({one.digest, *(other.digest for other in others)}) == 5


def test_strict_schemas() -> None:
    closed = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
    assert not is_strict(closed)
    assert is_strict(closed | {"additionalProperties": False})
    assert not is_strict({"type": "array", "items": closed})
    assert is_strict({"type": "array", "items": {"type": "string"}})
