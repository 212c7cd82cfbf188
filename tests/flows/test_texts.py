"""Any text that a user gives arrives in every rank, byte for byte: nothing on the way is a shell's or Kubernetes' to read."""

from __future__ import annotations

import json

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.flows.conftest import ON_BOTH, Runner

ODD = st.text("$(){}[]<>|&;*?~!#%=,.:/\\\"'` \t\n\rA é𝛼\u200b", max_size=30)
ANY = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=30)
texts = st.lists(st.one_of(ODD, ANY), min_size=40, max_size=60)


@ON_BOTH
@settings(max_examples=2, deadline=None, derandomize=True, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
@given(values=texts, tags=texts)
def test_variables_and_tags_arrive_as_they_are(runner: Runner, values: list[str], tags: list[str]) -> None:
    (runner.home / "texts.json").write_text(json.dumps(values))
    tags = [tag for tag in tags if tag]
    done = runner.run("texts_flow.py", "run", *(f"--tag={tag}" for tag in tags))
    assert done.code == 0, str(done)
    code = "from metaflow import Flow, namespace; namespace(None); import json\n"
    code += "data = Flow('TextsFlow').latest_run['join'].task.data\n"
    code += "print(json.dumps([[{k.decode(): v.hex() for k, v in one.items()} for one in data.variables], data.tags]))"
    variables, seen = json.loads(runner.python(code))
    assert variables == [{f"TEXT_{number}": text.encode().hex() for number, text in enumerate(values)}] * 2
    assert seen == [sorted(set(tags))] * 2
