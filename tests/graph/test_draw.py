"""The graph as JSON and as diagrams."""

import json

from tests.graph.graphs import from_json, graph_of
from weft.graph.draw import to_dot, to_json, to_mermaid, to_text

TEXT = """
trail<v> = max(stripes, prev(trail@v) * 0.9)
stripes = sin(me@x * 10)
lfo<v> = phasor(1)
spare = 3
load("a.png")::img<r>
display(trail@v * lfo@v, img@r, stripes)
compute(lfo@v)
"""


def test_json_keeps_everything():
    graph = graph_of(TEXT)
    assert from_json(json.loads(json.dumps(to_json(graph)))) == graph


def test_json_of_nothing():
    graph = graph_of("")
    assert from_json(to_json(graph)) == graph


def test_text():
    assert (
        to_text(graph_of(TEXT))
        == """\
visual/display · visual
  trail@v ← stripes@val, trail@v (next tick) · tied: it remembers a value for every pixel
  stripes@val
  lfo@v · tied: it remembers · read by others
  img@r · from load
  display ← trail@v, stripes@val, lfo@v, img@r

compute/compute · compute · after visual/display
  compute ← lfo@v (across)

not evaluated
  spare@val
"""
    )


def test_mermaid():
    assert (
        to_mermaid(graph_of(TEXT))
        == """\
flowchart LR
  subgraph s0["visual/display"]
    n0["trail@v<br>it remembers a value for every pixel"]
    n1["stripes@val"]
    n2["lfo@v<br>it remembers"]
    n3["img@r<br>load"]
    n4(["display"])
  end
  subgraph s1["compute/compute"]
    n5(["compute"])
  end
  subgraph s2["not evaluated"]
    n6["spare@val"]
  end
  n1 --> n0
  n0 -->|next tick| n0
  n0 --> n4
  n1 --> n4
  n2 --> n4
  n3 --> n4
  n2 -.-> n5
"""
    )


def test_dot_marks_what_crosses():
    dot = to_dot(graph_of(TEXT))
    assert dot.startswith("digraph weft {\n")
    assert dot.endswith("}\n")
    assert 'label="visual/display";' in dot
    assert "n2 -> n5 [style=dashed];" in dot
    assert 'n0 -> n0 [label="next tick"];' in dot


def test_diagrams_survive_quotes_in_names():
    graph = graph_of('display(1, to: "a\\"b")')
    assert "#quot;" in to_mermaid(graph)
    assert '\\"' in to_dot(graph)
