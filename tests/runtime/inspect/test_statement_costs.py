"""What the statements of a patch cost, and what is advised."""

from __future__ import annotations

from weft.contexts import context_table
from weft.errors import Source
from weft.permissions import DEFAULT_PERMISSIONS
from weft.runtime.compiling.stages import Request, build
from weft.runtime.inspect.cost_process import CostQuestion
from weft.runtime.inspect.statement_costs import OTHERWISE, StatementCost, costs_of_statements
from weft.runtime.live.costly_statements import CostlyStatements

TEXT = """\
spindle bent(p<x, y>) :: q {
  q = p
  for i in (1 to 4) {
    q@x += sin(i * q@y + me@time)
  }
}
clouds<v> = fbm(me@x * 4, me@y * 4, me@time)
ground<r, g> = <sin(me@x * me@y), cos(me@x + me@y)>
shifted<v> = clouds@v(me@x ~ me@x + me@y * 0.1)
way = <me@x, me@y> |> bent()
display(ground@r * shifted@v, ground@g, way@x)
"""


def costs(text: str) -> dict[str, StatementCost]:
    source = Source("a.weft", text)
    found = costs_of_statements(build(Request(source, context_table())).units, source)
    assert [each.share for each in found] == sorted((each.share for each in found), reverse=True)
    assert abs(sum(each.share for each in found) - 1) < 1e-9
    return {each.name: each for each in found}


def test_statements_are_named_as_they_are_written_and_know_what_to_do() -> None:
    source, found = Source("a.weft", TEXT), costs(TEXT)
    places = {name: source.position(each.place.start)[0] for name, each in found.items() if each.place is not None}
    assert places["clouds"] == 7
    assert places["ground"] == 8
    assert places["q"] == 1
    assert max(found, key=lambda name: found[name].share) == "clouds"
    advice = {name: each.advice(source) for name, each in found.items()}
    assert "fewer octaves" in advice["clouds"]
    assert "fewer steps of its loop" in advice["q"]
    assert advice["ground"] == OTHERWISE


def test_what_is_read_at_other_places_may_be_an_image() -> None:
    text = "a<v> = sin(me@x * me@y)\nb<v> = a@v(me@x ~ me@x + me@y)\ndisplay(a@v * b@v)\n"
    assert "image(…)" in costs(text)["a"].advice(Source("a.weft", text))


def test_a_text_without_work_at_each_pixel_has_no_costs() -> None:
    source = Source("a.weft", "display(0.5)\n")
    assert costs_of_statements(build(Request(source, context_table())).units, source) == []


def test_the_figures_name_the_most_expensive_statements(eventually) -> None:
    question = CostQuestion("a.weft", TEXT.encode(), DEFAULT_PERMISSIONS)
    costly = CostlyStatements()
    try:
        eventually(lambda: costly.of(question), seconds=60)
        lines = costly.of(question)
    finally:
        costly.close()
    shares = {name: each.share for name, each in costs(TEXT).items()}
    assert len(lines) == sum(share >= 0.01 for share in [*shares.values()][:3]) > 1
    assert lines[0] == f"clouds, line 7: {shares['clouds']:.0%} · fewer octaves of fbm, such as octaves: 3"
    assert all(line.startswith(name) for line, name in zip(lines, shares, strict=False))


def test_a_text_that_is_none_names_no_statement() -> None:
    costly, question = CostlyStatements(), CostQuestion("a.weft", b"display(", DEFAULT_PERMISSIONS)
    costly._find(question)
    assert costly.of(question) == ()
