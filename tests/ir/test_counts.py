"""What a program costs: how many expressions it becomes, and how often each is computed."""

import cProfile
from collections import Counter

import pytest

from tests.support.kernels import MACHINES, run
from tests.support.programs import rendered
from tests.support.verify_ir import verify
from weft.codegen.bytecode import assemble, disassemble
from weft.codegen.kernel import Kernel
from weft.contexts import ContextTable
from weft.errors import Report, Source, WeftError
from weft.graph.bindings import collect
from weft.graph.budget import MOST_STEPS, Budget
from weft.graph.build import build_graph
from weft.ir.expr import Lowered, Pool
from weft.ir.lower import lower
from weft.ir.passes import PASSES, PassContext, run_passes
from weft.ir.rates import Rate, rates
from weft.runtime.compiling.stages import Build, Request, build
from weft.syntax.parser import parse


def made(text: str, optimise: bool = True) -> Build:
    return build(Request(Source("test.weft", text), ContextTable()), optimise=optimise)


def only(text: str, optimise: bool = True) -> Lowered:
    (lowered,) = made(text, optimise).lowered
    return lowered


def kernel(text: str, optimise: bool = True) -> Kernel:
    (unit,) = made(text, optimise).units
    return unit.kernel


def count(lowered: Lowered, op: str) -> int:
    return Counter(node.op for node in lowered.nodes)[op]


def rate(lowered: Lowered, op: str) -> Rate:
    """The rate of the only expression of an operation."""
    slots = {slot.key: slot for slot in lowered.slots}
    found = [r for node, r in rates(lowered.roots, ContextTable()[lowered.context], slots).items()
             if node.op == op]  # fmt: skip
    assert len(found) == 1
    return found[0]


# --- sharing ------------------------------------------------------------------------------------------------------


def test_a_chain_of_strands_is_one_expression():
    text = "stripes = sin(me@x * 10 + me@y) bright = stripes * 2 display(bright)"
    assert count(only(text), "sinpi") == 1
    assert "LOAD_STRAND" not in disassemble(kernel(text))
    assert disassemble(kernel(text)).count("CALL sinpi") == 1


def test_a_strand_that_two_others_use_is_evaluated_once():
    text = "s = sin(me@x + me@y) a = s * 2 b = s + 1 display(a, b, a * b)"
    assert count(only(text), "sinpi") == 1
    assert disassemble(kernel(text)).count("CALL sinpi") == 1


@pytest.mark.parametrize(
    ("inner", "expected"),
    [
        ("me@time", Rate.FRAME),
        ("mouse@x", Rate.FRAME),
        ("me@x * 9", Rate.COLUMN),
        ("me@y", Rate.ROW),
        ("me@x * me@y", Rate.ELEMENT),
        ("prev(me@x)", Rate.ELEMENT),
        ("phasor(1)", Rate.FRAME),
    ],
)
def test_how_often_it_is_computed(inner, expected):
    wave = "sin" if expected <= Rate.FRAME else "sinpi"
    assert rate(only(f"display(sin({inner}) * me@x * me@y)"), wave) == expected


def test_what_is_constant_is_computed_once():
    assert count(only("display(sin(2) * me@x)"), "sinpi") == 0


# --- remaps -------------------------------------------------------------------------------------------------------


def test_equal_remaps_cost_one_evaluation():
    shifted = " + ".join(["s(me@x ~ me@x + 0.5)"] * 50)
    assert count(only(f"s = sin(me@x + me@y) display({shifted})"), "sinpi") == 1


def test_different_remaps_cost_one_evaluation_each():
    shifted = " + ".join(f"s(me@x ~ me@x + {k})" for k in range(1, 51))
    assert count(only(f"s = exp(me@x + me@y) display({shifted})"), "exp") == 50


def test_nested_remaps_cost_one_evaluation_each():
    lines = ["s0 = sin(me@x) + me@y"]
    lines += [f"s{k} = s{k - 1}(me@x ~ me@x * 2) + s{k - 1}" for k in range(1, 13)]
    # Each level halves or keeps x: 13 different arguments, although 4096 paths lead to them.
    assert count(only("\n".join([*lines, "display(s12)"])), "sinpi") == 13


def test_a_map_of_what_is_not_read_costs_nothing():
    assert count(only("s = sin(me@y) display(s(me@x ~ 0.1) + s(me@x ~ 0.2))"), "sinpi") == 1


# --- code ---------------------------------------------------------------------------------------------------------


def test_unoptimised_code_is_what_was_written():
    code = list(assemble(kernel("compute((5 + 3) * 2)", optimise=False)).walk())
    assert [i.op for i in code] == ["PUSH", "PUSH", "ADD", "PUSH", "MUL", "RETURN"]
    assert [i.operand for i in code] == [5.0, 3.0, None, 2.0, None, None]


def test_the_verifier_agrees_after_each_pass():
    text = """
    spindle blur(s, n) :: o { for i in (1 to n) { o += s(me@x ~ me@x + i * 0.01) } }
    trail<v> = max(blur(noise(me@x, me@y), 20), prev(trail@v)(me@x ~ me@x * 0.9))
    cache(trail, 3)::c<v>
    display(c@v(c@k ~ 1.5) + phasor(2) + hold(me@x, 1) + delay(me@y, me@x, 5))
    """
    contexts, report, seen = ContextTable(), Report(), []
    patch = collect(parse(Source("test.weft", text), report), contexts, report)
    graph = build_graph(patch, contexts, report)
    report.raise_errors()
    for subgraph in graph.subgraphs:
        pool = Pool()
        lowered = lower(patch, graph, subgraph, contexts, pool)
        context = PassContext(pool, contexts[subgraph.context])

        own = []

        def check(name, after, own=own):
            seen.append(name)
            own.append(name)
            if "expand" in own:  # before, there are builtins
                verify(after)

        run_passes(lowered, context, after=check)
    assert seen == [p.name for p in PASSES] * len(graph.subgraphs)


# --- reloads ------------------------------------------------------------------------------------------------------


def test_an_edit_changes_the_hash_of_its_unit_only():
    def hashes(a: str, b: str) -> dict[str, str]:
        return {u.subgraph.name: u.hash for u in made(f"a = {a} b = {b} display(a) compute(b)").units}

    before, after = hashes("me@x * 2", "me@time"), hashes("me@x * 3", "me@time")
    assert before["compute/compute"] == after["compute/compute"]
    assert before["visual/display"] != after["visual/display"]
    assert before == hashes("me@x*2 // a comment\n", "me@time")


def test_slots_keep_their_keys_when_others_come_and_go():
    def keys(text: str) -> set[str]:
        return {slot.key for lowered in made(text).lowered for slot in lowered.slots}

    before = keys("a = phasor(1) display(a)")
    assert before < keys("z = phasor(3) a = 2 * phasor(1 + z) display(a * z)")


# --- sizes --------------------------------------------------------------------------------------------------------


@pytest.mark.long
def test_ten_thousand_terms():
    terms = " + ".join(f"me@x * {k}" for k in range(10_000))
    text = f"display({terms})"
    program = made(text)
    assert count(program.lowered[0], "add") == 9_999
    compiled = program.units[0].kernel
    assert [run(compiled, machine) for machine in MACHINES] == [0.5 * sum(range(10_000))] * len(MACHINES)


@pytest.mark.long
def test_ten_thousand_else_ifs():
    chain = " else ".join(f"if x<{k} then 1" for k in range(1, 10_000))
    text = f"x = me@x * 10 display({chain} else 0)"
    program = made(text)
    assert count(program.lowered[0], "select") == 9_999
    compiled = program.units[0].kernel
    assert [run(compiled, machine) for machine in MACHINES] == [1] * len(MACHINES)


@pytest.mark.long
def test_ten_thousand_strands():
    lines = [f"s{k} = s{k - 1} + me@x" for k in range(1, 10_000)]
    assert count(only("\n".join(["s0 = me@y", *lines, "display(s9999)"])), "add") == 9_999


def refused(text: str, most: int) -> tuple[str, int]:
    """The messages about a text that is given `most` steps, and the number of function calls until it is refused: the
    work that it takes, which is the same on every machine."""
    report, contexts = Report(), ContextTable()
    patch = collect(parse(Source("test.weft", text), report), contexts, report)
    budget = Budget(most)
    with cProfile.Profile() as profile:
        try:
            graph = build_graph(patch, contexts, report, budget)
            for subgraph in graph.subgraphs:
                lower(patch, graph, subgraph, contexts, Pool(budget=budget))
        except WeftError as failure:
            report.add(failure.diagnostics)
    return rendered(report.diagnostics), sum(entry.callcount for entry in profile.getstats())


@pytest.mark.parametrize(
    "text",
    [
        # Each level asks the one below at two other places: 2¹⁷ different expressions.
        "\n".join(["s0 = sin(me@x)"]
                  + [f"s{k} = s{k - 1}(me@x ~ me@x * {k + 1}) + s{k - 1}(me@x ~ me@x + {k})" for k in range(1, 30)]
                  + ["display(s29)"]),
        "\n".join(["spindle f0(v) :: o { o = sin(v) }"]
                  + [f"spindle f{k}(v) :: o {{ o = f{k - 1}(v * 2) + f{k - 1}(v + {k}) }}" for k in range(1, 40)]
                  + ["display(f39(me@x))"]),
    ],
    ids=["remaps", "calls"],
)  # fmt: skip
def test_a_runaway_expansion_is_an_error_soon(text):
    most = MOST_STEPS // 20
    message, calls = refused(text, most)
    assert "[program-too-large]" in message
    assert calls < 10 * most


def test_a_loop_without_end_is_an_error_at_once():
    text = "spindle f(v) :: o { for i in (1 to 1000000000) { o += v } } display(f(1))"
    message, calls = refused(text, MOST_STEPS)
    assert "[loop-too-long]" in message
    assert calls < MOST_STEPS / 100
