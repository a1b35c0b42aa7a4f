"""How kernels run as native code, and why."""

from __future__ import annotations

from functools import reduce

import pytest

from tests.support.exprs import Exprs, lowered
from tests.support.kernels import compiled
from weft.codegen.kernel import Kernel
from weft.codegen.native.plan import Form, KernelDomain, domain_of, plan


def made(count: int, context: str, op: str = "sin") -> Kernel:
    """A picture or a sound of about this many operations."""
    e = Exprs()
    start = e.coord("abstime" if context == "audio" else "x")
    return compiled(lowered(reduce(lambda total, n: e(op, total * n), range(2, count // 2), start), context=context))


PICTURE, SOUND = KernelDomain.PICTURE, KernelDomain.SOUND

PLANS = {
    "a picture": ((100, "visual"), PICTURE, Form.LIST, Form.MODULE, ""),
    "a sound": ((100, "audio"), SOUND, Form.LIST, Form.MODULE, ""),
    "a large sound": ((1300, "audio"), SOUND, Form.LIST, Form.QUICK_MODULE, "takes long to compile well"),
    "a picture that is too large": ((900, "visual", "exp"), PICTURE, Form.LIST, None, "too large for LLVM"),
    "a sound that is too large": ((900, "audio", "exp"), SOUND, Form.LIST, None, "too large for LLVM"),
}


@pytest.mark.parametrize(("parts", "domain", "first", "second", "reason"), PLANS.values(), ids=PLANS.keys())
def test_what_becomes_of_a_kernel(
    parts: tuple[int, str] | tuple[int, str, str], domain: KernelDomain, first: Form, second: Form | None, reason: str
) -> None:
    kernel = made(*parts)
    found = plan(kernel)
    assert (found.domain, found.first, found.second) == (domain, first, second)
    assert reason in found.reason
    assert bool(reason) == bool(found.reason)
    assert domain_of(kernel) is domain
    assert found.text.startswith("a list of calls")


def test_without_lists_machine_code_comes_first_or_nothing() -> None:
    small = plan(made(100, "visual"), lists=False)
    assert (small.first, small.second) == (Form.MODULE, Form.MODULE)
    assert plan(made(1300, "audio"), lists=False).second is None
    assert plan(made(900, "visual", "exp"), lists=False).first is None


def test_what_reads_strands_at_its_pixels_is_left_to_numpy() -> None:
    e = Exprs()
    found = plan(compiled(lowered(e.strand("a@b", e.coord("x") * e.coord("y")))))
    assert found.domain is None
    assert found.text == "numpy: it reads strands where machine code cannot"
