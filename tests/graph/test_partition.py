"""Which context evaluates a strand, and how the graph is cut into subgraphs."""

from dataclasses import replace

import pytest

from tests.graph.graphs import graph_of, pinned_table, ref, strand
from weft.contexts import OWN_CONTEXTS, ContextTable
from weft.graph.nodes import Edge, RenderGraph


def contexts(text: str, name: str) -> tuple[str, ...]:
    return strand(graph_of(text), name).contexts


def home(text: str, name: str = "s@val") -> str | None:
    return strand(graph_of(text), name).tied


def runs_before(graph: RenderGraph) -> dict[str, tuple[str, ...]]:
    return {s.name: s.depends_on for s in graph.subgraphs}


def assert_runs_in_order(graph: RenderGraph) -> None:
    done: set[str] = set()
    for subgraph in graph.subgraphs:
        assert set(subgraph.depends_on) <= done, subgraph.name
        done.add(subgraph.name)


# --- tags ---------------------------------------------------------------------------------------------------------


def test_an_untied_strand_goes_wherever_it_is_consumed():
    text = "a = sin(me@x) b = a * 2 display(b) audio(b) compute(a)"
    assert contexts(text, "a") == ("audio", "compute", "visual")
    assert contexts(text, "b") == ("audio", "visual")
    subgraphs = {s.context: s for s in graph_of(text).subgraphs}
    assert all(ref("a") in s.strands for s in subgraphs.values())
    assert ref("b") not in subgraphs["compute"].strands
    assert all(not s.reads and not s.exposes for s in subgraphs.values())


def test_what_nothing_consumes_has_no_context():
    assert contexts("a = 1 b = prev(a) display(2)", "b") == ()
    assert graph_of("a = 1").subgraphs == ()


@pytest.mark.parametrize(
    ("sinks", "expected"),
    [
        ("display(s) audio(s) compute(s)", "audio"),
        ("display(s) compute(s)", "visual"),
        ("compute(s)", "compute"),
        ("audio(s) compute(s)", "audio"),
    ],
)
def test_state_belongs_to_one_context(sinks, expected):
    assert home(f"s = phasor(1) {sinks}") == expected


@pytest.mark.parametrize("inner", ["me@x", "me@py", "other * 2", "prev(me@y)"])
def test_state_over_the_picture_belongs_to_visual(inner):
    assert home(f"other = me@x s = prev({inner}) display(s) audio(s) compute(s)") == "visual"


def test_state_over_the_picture_without_a_picture():
    assert home("s = prev(me@x) audio(s) compute(s)") == "audio"


def test_a_consumer_that_is_tied_decides_for_what_it_reads():
    text = "inner = prev(me@time) s = prev(inner) + me@x * prev(me@x) display(s) compute(s)"
    assert home(text, "inner") == "visual"


def test_a_strand_says_why_it_is_tied():
    graph = graph_of("a = prev(me@x) b = phasor(1) c = 2 display(a + b + c)")
    assert strand(graph, "a").reason == "it remembers a value for every pixel"
    assert strand(graph, "b").reason == "it remembers"
    assert strand(graph, "c").reason is None


def test_a_source_of_one_context():
    graph = graph_of("mic()::m<l> display(m@l) v = m@l * 2 compute(v)")
    assert strand(graph, "m@l").tied == "audio"
    assert strand(graph, "v").contexts == ("compute",)


def test_memory_of_a_microphone_is_not_over_the_picture():
    graph = graph_of("mic()::m<l> level<v> = prev(level@v) * 0.9 + abs(m@l) display(level@v) audio(level@v)")
    assert strand(graph, "level@v").tied == "audio"


FOLLOWER = """
spindle follow(x) :: <a, b> { m = prev(t); t = x * 2; out a = t + m; out b = m }
follow(src)::n<a, b>
"""


def test_feedback_in_a_spindle_ties_what_calls_it():
    text = "spindle low(x) :: v { v = prev(v) * 0.5 + x } src = me@time s = low(src)"
    assert home(f"{text} display(s) audio(s)") == "audio"
    assert home(f"{text} display(s(me@x ~ 0)) compute(s)") == "visual"
    assert home(f"{text} t = low(me@x) display(t) audio(t)", "t") == "visual"


def test_an_output_reads_what_memory_that_it_shares_needs():
    graph = graph_of(f"{FOLLOWER} src = phasor(1) display(n@b) audio(src)")
    assert strand(graph, "n@b").reads == (Edge(ref("src"), weak=True),)
    assert next(s for s in graph.subgraphs if s.name == "visual/display").reads == (ref("src"),)
    cached = graph_of("src = phasor(1) cache(<src * 2, me@time>, 9)::c<a, b> display(c@b) audio(src)")
    assert strand(cached, "c@b").reads == (Edge(ref("src"), weak=True),)


def test_outputs_that_share_memory_belong_to_one_context():
    text = f"{FOLLOWER} src = me@time display(n@a) audio(n@b)"
    assert (home(text, "n@a"), home(text, "n@b")) == ("audio", "audio")
    alone = graph_of(f"{FOLLOWER} src = me@time audio(n@b)")
    assert strand(alone, "n@a").contexts == ()
    apart = "spindle two(x) :: <a, b> { out a = prev(x); out b = prev(x) } two(1)::n<a, b> display(n@a) audio(n@b)"
    assert (home(apart, "n@a"), home(apart, "n@b")) == ("visual", "audio")


# --- subgraphs ----------------------------------------------------------------------------------------------------


def test_a_path_that_leaves_its_context_and_comes_back_is_split():
    text = """
    a = integrate(1)
    b = prev(me@x) + a
    c = integrate(b(me@x ~ 0.5)) + a
    display(b)
    pin(a, c)
    """
    graph = graph_of(text, pinned_table())
    assert [strand(graph, n).tied for n in "ac"] == ["pinned", "pinned"]
    # b is consumed by c as well, so that it goes to pinned unless it holds a picture.
    assert strand(graph, "b").tied == "visual"
    a, b, c = (next(s for s in graph.subgraphs if ref(n) in s.tied) for n in "abc")
    assert len({a.name, b.name, c.name}) == 3
    assert_runs_in_order(graph)
    assert a.depends_on == ()
    assert b.depends_on == (a.name,)
    assert set(c.depends_on) == {a.name, b.name}


def test_what_is_unconnected_is_apart():
    graph = graph_of('display(me@x) display(me@y, to: "left") a = phasor(1) compute(a)')
    assert {s.name for s in graph.subgraphs} == {"visual/display", "visual/display:left", "compute/compute"}
    assert runs_before(graph) == dict.fromkeys(runs_before(graph), ())


def test_what_shares_a_strand_is_together():
    graph = graph_of("a = sin(me@x) b = phasor(a) compute(b) compute(a)")
    assert [s.sinks for s in graph.subgraphs] == [("compute", "compute.2")]


def test_each_picture_is_apart_and_what_remembers_is_with_the_first_one_that_reads_it():
    text = """
    both = prev(me@x) + me@y
    late = prev(me@y) * both
    display(late, to: "left")
    display(both * me@x)
    display(late + both, to: "right")
    """
    graph = graph_of(text)
    main, left, right = (next(s for s in graph.subgraphs if s.sinks == (label,))
                         for label in ("display", "display:left", "display:right"))  # fmt: skip
    assert (main.tied, main.reads, main.target) == ((ref("both"), ref("late")), (), "")
    assert (left.tied, left.reads, left.target) == ((), (ref("late"),), "left")
    assert (right.tied, set(right.reads), right.target) == ((), {ref("late"), ref("both")}, "right")
    assert_runs_in_order(graph)


def test_in_one_memory_a_picture_evaluates_what_another_one_remembers():
    text = """
    heard = phasor(3)
    both = prev(me@x) + heard
    late = prev(me@y) * both
    display(both * me@x)
    display(late(me@x ~ 1 - me@x), to: "left")
    display(both + late, to: "right")
    audio(heard)
    """
    contexts = ContextTable([replace(spec, in_one_memory=spec.sweeps_plane) for spec in OWN_CONTEXTS])
    graph = graph_of(text, contexts)
    main, left, right = (next(s for s in graph.subgraphs if s.sinks == (label,))
                         for label in ("display", "display:left", "display:right"))  # fmt: skip
    assert (main.tied, main.borrows) == ((ref("both"), ref("late")), ())
    assert (set(left.borrows), set(right.borrows)) == ({ref("both"), ref("late")}, {ref("both"), ref("late")})
    assert all(each.reads == (ref("heard"),) for each in (main, left, right))
    assert {main.name} < set(left.depends_on) == set(right.depends_on)
    assert main.exposes == ()
    assert_runs_in_order(graph)


def test_strands_that_share_state_are_together_even_if_two_pictures_read_them():
    text = """
    spindle two(x) :: <a, b> { v = integrate(x); out a = v * me@x; out b = v * me@y }
    two(2)::s<a, b>
    display(s@a)
    display(s@b, to: "left")
    """
    main, left = graph_of(text).subgraphs
    assert set(main.tied) == {ref("s@a"), ref("s@b")}
    assert left.reads == (ref("s@b"),)


def test_pictures_that_share_no_memory_read_nothing_across():
    graph = graph_of('a = sin(me@x) b = prev(a) display(a) display(a * b, to: "left")')
    main, left = graph.subgraphs
    assert (main.tied, main.reads) == ((), ())
    assert (left.tied, left.reads) == ((ref("b"),), ())


def test_a_reader_runs_after_what_it_reads():
    graph = graph_of("s = phasor(1) display(s * me@x) audio(s)")
    assert runs_before(graph) == {"audio/audio": (), "visual/display": ("audio/audio",)}
    audio, visual = graph.subgraphs
    assert audio.exposes == visual.reads == (ref("s"),)


def test_feedback_across_contexts_has_an_order():
    graph = graph_of("a = phasor(1 + prev(b)) b = prev(me@x) * a display(b) audio(a)")
    assert_runs_in_order(graph)
    assert {s.context for s in graph.subgraphs} == {"audio", "visual"}


def test_feedback_within_a_strand_is_a_weak_edge():
    graph = graph_of("t = max(d, prev(t) * 0.9) d = me@x display(t)")
    assert [(str(e.source), e.weak) for e in strand(graph, "t").reads] == [("d@val", False), ("t@val", True)]


def test_names_do_not_depend_on_other_statements():
    one = graph_of("a = phasor(1) compute(a) display(me@x)")
    other = graph_of("z = 3 display(me@x * z) q = phasor(2) a = phasor(1) compute(a)")
    assert {s.name for s in one.subgraphs} == {s.name for s in other.subgraphs}


def test_a_long_chain_of_state():
    lines = ["s0 = phasor(1)"]
    lines += [f"s{i} = integrate(s{i - 1})" for i in range(1, 200)]
    graph = graph_of("\n".join([*lines, "display(s199) audio(s100) compute(s3)"]))
    assert_runs_in_order(graph)
