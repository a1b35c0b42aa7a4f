"""`weft compile` and `weft graph`."""

from __future__ import annotations

import json

import pytest

from weft.graph.serialize import from_json


def test_without_a_dump_it_says_what_was_compiled(weft):
    text = weft("compile", "rich.weft").stdout
    for words in ("visual/display", "audio/audio", "element ", "hash "):
        assert words in text


@pytest.mark.parametrize(
    ("stage", "words"),
    [("ast", "(output display a@v b@r b@g)"), ("graph", "a@v"), ("ir", "%"), ("bytecode", "LOAD_COORD x")],
)
def test_each_dump(weft, stage, words):
    text = weft("compile", "plain.weft", f"--dump-{stage}").stdout
    assert words in text
    assert f"// {stage}" not in text


def test_several_dumps_have_heads_and_come_in_the_order_of_the_stages(weft):
    text = weft("compile", "plain.weft", "--dump-bytecode", "--dump-ast").stdout
    heads = [line for line in text.splitlines() if line in ("// ast", "// bytecode")]
    assert heads == ["// ast", "// bytecode"]


def test_without_optimising_the_code_is_as_it_was_written(weft):
    weft.file("sum.weft", "display((5 + 3) * 2)\n")
    plain = weft("compile", "sum.weft", "--dump-bytecode", "-O0").stdout
    code = [" ".join(line.split()[1:]) for line in plain.splitlines() if line[:7].strip().isdigit()]
    assert code == ["PUSH 5", "PUSH 3", "ADD", "PUSH 2", "MUL", "RETURN"]
    assert "PUSH 16" in weft("compile", "sum.weft", "--dump-bytecode").stdout


def test_dumps_are_the_same_every_time(weft):
    args = ("compile", "rich.weft", "--dump-ast", "--dump-graph", "--dump-ir", "--dump-bytecode", "--dump-llvm")
    assert weft(*args, PYTHONHASHSEED="1").stdout == weft(*args, PYTHONHASHSEED="2").stdout


def test_one_context_alone(weft):
    text = weft("compile", "rich.weft", "--dump-bytecode", "--context", "audio").stdout
    assert "kernel audio/audio" in text
    assert "kernel visual" not in text
    assert 'did you mean "audio"?' in weft("compile", "rich.weft", "--context", "adio", code=2).stderr


def test_shaders(weft):
    text = weft("compile", "rich.weft", "--dump-glsl").stdout
    assert "#version 330 core" in text
    assert "void main() {" in text
    only = weft("compile", "rich.weft", "--dump-glsl", "--context", "audio").stdout
    assert "runs on the CPU: each of its values needs the one before" in only
    assert "#version" not in only
    plain = weft("compile", "rich.weft", "--dump-glsl", "--context", "visual", "-O0").stdout
    assert plain != weft("compile", "rich.weft", "--dump-glsl", "--context", "visual").stdout


def test_kernels_in_metal(weft):
    text = weft("compile", "rich.weft", "--dump-msl").stdout
    assert "#include <metal_stdlib>" in text
    assert "kernel void visual_display(" in text
    assert "kernel void compute_" in text
    only = weft("compile", "rich.weft", "--dump-msl", "--context", "audio").stdout
    assert "runs on the CPU: each of its values needs the one before" in only
    assert "kernel void" not in only
    plain = weft("compile", "rich.weft", "--dump-msl", "--context", "visual", "-O0").stdout
    assert plain != weft("compile", "rich.weft", "--dump-msl", "--context", "visual").stdout


def test_files_instead(weft):
    weft("compile", "plain.weft", "--dump-ir", "-o", "one")
    assert [p.name for p in (weft.folder / "one").iterdir()] == ["plain.ir"]
    listed = weft("compile", "plain.weft", "-o", "deep/all").stdout
    found = sorted(p.name for p in (weft.folder / "deep/all").iterdir())
    names = ("asm", "ast", "bytecode", "glsl", "graph", "ir", "llvm", "msl")
    assert found == [f"plain.{name}" for name in names]
    assert len(listed.splitlines()) == len(found)
    shown = weft("compile", "plain.weft", "--dump-ir").stdout
    assert (weft.folder / "deep/all/plain.ir").read_text(encoding="utf-8") == shown


def test_files_where_there_can_be_none(weft):
    weft.file("taken", "")
    assert "taken" in weft("compile", "plain.weft", "-o", "taken/in", code=3).stderr


@pytest.mark.parametrize(
    ("form", "words"), [("text", "visual/display"), ("mermaid", "flowchart"), ("dot", "digraph")]
)
def test_graph(weft, form, words):
    assert words in weft("graph", "rich.weft", "--format", form).stdout


def test_graph_as_json_can_be_read_back(weft):
    graph = from_json(json.loads(weft("graph", "rich.weft", "--format", "json").stdout))
    assert {s.context for s in graph.subgraphs} == {"visual", "audio", "compute"}
    assert weft("graph", "rich.weft").stdout == weft("graph", "rich.weft", "--format", "text").stdout
