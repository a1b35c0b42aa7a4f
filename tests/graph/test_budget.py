"""Short texts that ask for much: each compiles within the budget of steps, or is refused at the place that spends it.

Nothing is timed: a step is a count, the same on every machine.
"""

from pathlib import Path

import pytest

from tests.support.kernels import MACHINES, run
from tests.support.together import all_but
from tests.test_long_texts import work_of
from weft.contexts import ContextTable
from weft.errors import Source, WeftError
from weft.graph.budget import MOST_STEPS
from weft.runtime.compiling.stages import Build, Request, build
from weft.runtime.inspect.forecast import check

ROOT = Path(__file__).parents[2]


# What grows without end does so within the eighth part of what a compile may take.
FEW_STEPS = MOST_STEPS // 8


def made(text: str, most_steps: int = MOST_STEPS) -> Build:
    return build(Request(Source("t", text), ContextTable(), most_steps=most_steps))


def loops(count: int, body: str, ends: str = "1 to 16", inner: str = "") -> str:
    heads = " ".join(f"for i{k} in ({ends}) {{ {inner}" for k in range(count))
    return f"spindle s(x) :: v {{ v = 0\n{heads}{body}{' }' * count}\n}}\ndisplay(s(me@x))"


def spindles(count: int, body: str, first: str = "out o = sin(x)", call: bool = True) -> str:
    """A row of spindles, each made of the one before it: `[]` is replaced by that one's number, `#` by its own."""
    bodies = [first, *(body.replace("[]", str(k - 1)).replace("#", str(k)) for k in range(1, count))]
    rows = [f"spindle f{k}(x) :: o {{ {each} }}" for k, each in enumerate(bodies)]
    return "\n".join([*rows, f"display(f{count - 1}(me@x))" if call else "display(me@x)"])


def strands(count: int, value: str, first: str = "sin(me@x)", names: str = "v") -> str:
    """A row of instances in the same manner."""
    rows = [f"s{k}<{names}> = {value.replace('[]', str(k - 1)).replace('#', str(k))}" for k in range(1, count)]
    return "\n".join([f"s0<{names}> = {first}", *rows, f"display(s{count - 1})"])


def called(count: int, body: str) -> str:
    return f"spindle f(x) :: o {{ {body} }}\ndisplay({' + '.join(f'f(me@x * {k})' for k in range(count))})"


COPIES = ", ".join(f"a{k}" for k in range(64))
AXES = "s0<r, g, b> = <me@x, me@y, 0>\n" + "\n".join(
    f"cache(s{k - 1}, 30)::c{k}<r, g, b>\ns{k}<r, g, b> = c{k}(c{k}@k ~ me@x * 3) + c{k}(c{k}@k ~ me@y * 3)"
    for k in range(1, 30)
)  # fmt: skip
MANY_OUTPUTS = "\n".join([
    f"spindle f(x) :: <{', '.join(f'o{k}' for k in range(500))}> {{",
    f"{' '.join(f'out o{k} = x' for k in range(500))} }}",
    f"display({' + '.join(f'f(me@x)@o{k}' for k in range(500))})",
])  # fmt: skip
LARGE_BUNDLE = "\n".join([
    f"spindle s(x) :: v {{ c = <{', '.join(f'x + {k}' for k in range(1000))}>",
    f"v = {' + '.join(f'c[x * {k}]' for k in range(200))} }}",
    "display(s(me@x))",
])  # fmt: skip

REFUSED = {
    "a large bundle, often": (LARGE_BUNDLE, "program-too-large", "t:3:9"),
    "triggers elsewhere": (strands(60, "hold(s[], s[](me@x ~ me@x * #))"), "program-too-large", "t:10:4"),
    "steps with memory": (loops(8, "v += prev(x)"), "program-too-large", "t:2:1"),
    "a deep row of calls": (spindles(400, "out o = f[](x) + 1"), "too-deep", "t:145:32"),
    "noise of noise": (strands(300, "fbm(s[], me@y)"), "program-too-large", "t:33:5"),
    "steps with memory and work": (loops(3, "v += prev(sin(x * i0 * i1 * i2))"), "program-too-large", "t:2:1"),
    "unrolled loops in calls": (
        spindles(8, "o = 0 for i in (1 to 16) { o += f[](x * i) }", "out o = prev(x)"), "program-too-large", "t:2:28",
    ),
    "loops that start anew": (loops(30, "v += i0", "1 to x", "v = 0 "), "program-too-large", "t:2:1"),
    "loops in calls": (
        spindles(20, "o = 0 for i in (1 to x) { o += f[](x * i) + f[](x + i) }"), "program-too-large", "t:3:28",
    ),
    "values through a loop": (
        "spindle s(x) :: v {\n" + " ".join(f"v{k} = 0" for k in range(450)) + "\nfor i in (1 to x) { "
        + " ".join(f"v{k} = v{k + 1}" for k in range(449)) + " v449 += i }\nv = v0 }\ndisplay(s(me@x))",
        "program-too-large", "t:3:1",
    ),
    "calls of calls": (spindles(40, "out o = f[](x) + f[](x * 2)"), "program-too-large", "t:13:31"),
    "calls of calls, with other numbers": (
        spindles(40, "out o = f[](x * 2) + f[](x + #)"), "program-too-large", "t:13:31",
    ),
    "bound calls of calls": (
        spindles(40, "f[](x)::a<v> f[](x * 2)::b<v> out o = a + b"), "program-too-large", "t:13:23",
    ),
    "calls of calls, remapped": (
        spindles(30, "out o = f[](x)(me@x ~ me@x + #) + f[](x)(me@x ~ me@x * #)"), "program-too-large", "t:12:31",
    ),
    "copies of copies": (
        spindles(5, f"f[]<64>(x)::a<{COPIES}> out o = {' + '.join(f'a@a{k}' for k in range(64))}"),
        "program-too-large", "t:4:22",
    ),
    "a long body, often": (
        called(1000, " ".join(f"a{k} = x" for k in range(500)) + " out o = x"), "program-too-large", "t:2:1",
    ),
    "many outputs, often": (MANY_OUTPUTS, "program-too-large", "t:3:9"),
    "remaps of remaps": (strands(30, "s[](me@x ~ me@x * #) + s[](me@x ~ me@x + #)"), "program-too-large", "t:10:4"),
    "remaps by themselves": (strands(30, "s[](me@x ~ s[])"), "program-too-large", "t:14:5"),
    "remaps of locals": (
        "spindle f(x) :: o { a0 = x\n" + "\n".join(
            f"a{k} = a{k - 1}(me@x ~ me@x + {k}) + a{k - 1}(me@x ~ me@x * {k})" for k in range(1, 30)
        ) + "\nout o = a29 }\ndisplay(f(me@x))",
        "program-too-large", "t:32:9",
    ),
    "caches between ticks": (f"{AXES}\ndisplay(s29)", "program-too-large", "t:17:7"),
    "noise": (f"display({' + '.join(f'fbm(me@x * {k}, me@y)' for k in range(1000))})", "program-too-large", "t:1:9"),
    "memory": (f"display({' + '.join(f'prev(me@x * {k})' for k in range(1000))})", "program-too-large", "t:1:17607"),
    "pictures": ("\n".join(f'display(me@x * {k}, to: "w{k}")' for k in range(1000)), "program-too-large", "t:70:1"),
    "a deep row of bound calls": (spindles(400, "f[](x)::a<v> out o = a + 1"), "too-deep", "t:145:24"),
}  # fmt: skip


@pytest.mark.parametrize("name", all_but(8, REFUSED))
def test_what_asks_for_too_much_is_refused_at_its_place(name: str) -> None:
    text, code, place = REFUSED[name]
    with pytest.raises(WeftError) as caught:
        made(text, FEW_STEPS)
    (told,) = caught.value.diagnostics
    assert (told.code, str(told.span)) == (code, place)
    assert told.hint


MAY = {
    "loops": loops(8, "v = x"),
    "loops with work": loops(5, "v += sin(x * i0 * i1 * i2 * i3 * i4)"),
    "loops of a step": loops(100, "v += x", "1 to 1"),
    "loops of noise": loops(3, "v += fbm(x * i0, me@y * i1, i2)"),
    "a row of calls": spindles(200, "out o = f[](x + #) + 1"),
    "a row of bound calls": spindles(200, "f[](x)::a<v> out o = a + 1"),
    "calls of calls, uncalled": spindles(40, "out o = f[](x) + f[](x * 2)", call=False),
    "choices of choices": (
        "spindle s(x) :: v { c0 = <x, x + 1, x + 2> "
        + " ".join(f"c{k} = <c{k - 1}[x], c{k - 1}[x + 1], c{k - 1}[x + 2]>" for k in range(1, 30))
        + " v = c29[x] } display(s(me@x))"
    ),
    "a row of memory": strands(2000, "prev(s[])"),
    "a row of memory, the other way": "\n".join(reversed(strands(2000, "prev(s[])").splitlines())),
    "memory in circles": "\n".join(
        f"s{k} = prev(s{(k + 1) % 400}) + prev(s{(k * 7 + 3) % 400}) + me@x" for k in range(400)
    ) + "\ndisplay(s0)",
    "a long body": "spindle s(x) :: v { a0 = x " + " ".join(f"a{k} = a{k - 1} + 1" for k in range(1, 5000))
    + " v = a4999 } display(s(me@x))",
    "remaps in a row": f"a = sin(me@x) display(a{'(me@x ~ me@x + 0.1)' * 2000})",
    "positional remaps in a row": f"a = sin(me@x) display(a{'(me@x + 0.1)' * 2000})",
    "memory in 4,096 steps": loops(1, "v += prev(x * i0)", "1 to 4096"),
    "a bundle of thousands": f"c = <{', '.join(['me@x'] * 4000)}>\ndisplay(c[0] + sum(c))",
    "bundles of bundles": "b = <sin(me@x * i) for i in (1 to 64)>\ns0 = b\n"
    + "\n".join(f"s{k} = s{k - 1} * b" for k in range(1, 60)) + "\ndisplay(sum(s59))",
    "powers": f"display({'2^' * 5000}me@x)",
}  # fmt: skip


@pytest.mark.parametrize("name", all_but(6, MAY))
def test_what_only_looks_large_compiles(name: str) -> None:
    assert made(MAY[name]).budget.spent < MOST_STEPS


@pytest.mark.long
def test_a_row_of_spindles_takes_as_many_calls_as_it_has() -> None:
    """Whether they are called or only checked: twice the row is about twice the work."""
    for call, body in (
        (True, "out o = f[](x * #) + 1"),
        (True, "f[](x)::a<v> out o = a"),
        (False, "out o = f[](x * #) + 1"),
        (False, "f[](x)::a<v> out o = a"),
        (False, "z = x + 1 out o = f[](z, me@y) + f[](x, 0.5) + f[](x, 0.5)"),
    ):
        rows = [spindles(n, body, call=call) for n in (100, 200)]
        if "(z" in body:
            rows = [row.replace("(x) ::", "(x, y) ::") for row in rows]
        short, long = (made(row).budget.spent for row in rows)
        assert long < 2.5 * short, (call, body)


@pytest.mark.long
def test_patches_take_a_small_part_of_the_budget_and_the_same_each_time() -> None:
    for path in ("patches/bells.weft", "patches/aurora.weft", "patches/bench/fifty.weft"):
        text = (ROOT / path).read_text(encoding="utf-8")
        spent = made(text).budget.spent
        assert spent < MOST_STEPS / 5
    assert made(text).budget.spent == spent


@pytest.mark.long
@pytest.mark.parametrize(("name", "place"), [("pictures", "t:575:1"), ("noise of noise", "t:265:6")])
def test_check_and_compile_refuse_what_takes_more_than_the_whole_budget(name: str, place: str) -> None:
    text, code, _ = REFUSED[name]
    with pytest.raises(WeftError) as caught:
        made(text)
    for (told,) in (caught.value.diagnostics, check(Source("t", text), ContextTable())):
        assert (told.code, str(told.span)) == (code, place)


def test_a_loop_that_is_not_written_out_gives_the_same() -> None:
    """Sixteen times sixteen steps are written out in part, where that pays."""
    sum_of_products = sum(i * j * k for i in range(1, 17) for j in range(1, 17) for k in range(1, 3))
    text = """spindle s(x) :: v {
        for i in (1 to 16) { for j in (1 to 16) { for k in (1 to 2) { v += i * j * k * x + 0 * sin(x) } } } }
        compute(s(1))"""
    (unit,) = made(text).units
    assert any(node.op == "loop" for _, node in unit.kernel.walk())
    assert [run(unit.kernel, machine) for machine in MACHINES] == [sum_of_products] * len(MACHINES)


@pytest.mark.long
@pytest.mark.parametrize(
    ("text", "most"),
    [
        (spindles(40, "out o = f[](x * 1.1) + f[](x + 0.5)"), 15),
        (spindles(200, "out o = f[](x) + 1"), 45),  # arguments of arguments
    ],
)
def test_a_step_is_little_work(text: str, most: float) -> None:
    """However deeply calls are nested: a text that is refused is refused soon."""
    spent: list[int] = []

    def work() -> None:
        try:
            spent.append(made(text, FEW_STEPS).budget.spent)
        except WeftError:
            spent.append(FEW_STEPS)

    work()  # caches
    assert work_of(work) < most * spent[0]
