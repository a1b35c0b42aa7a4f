"""How much memory there is, by what the system tells of this process, and which of its threads run first."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from itertools import pairwise
from pathlib import Path

import pytest

from weft.backends.hardware import Limit, lower_priority, memory_free, memory_limits, memory_total

GB = 1 << 30
UNLIMITED = 2**63 - 4096


def process_in(folder: Path, cgroup: str, mounts: str) -> Path:
    """What the system says of a process in a group; the groups are in folders."""
    process = folder / "proc"
    process.mkdir()
    (process / "cgroup").write_text(cgroup)
    (process / "mountinfo").write_text(f"23 1 0:20 / / rw - ext4 /dev/sda rw\n{mounts.format(folder)}\n")
    return process


def group(path: Path, **files: object) -> None:
    """`memory_max` for `memory.max`: only the first underscore means a point."""
    path.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (path / name.replace("_", ".", 1)).write_text(f"{content}\n")


def test_groups_of_version_2_limit_each_within_the_next(tmp_path: Path) -> None:
    group(tmp_path / "groups")  # the root has no limit of its own
    group(tmp_path / "groups/a", memory_max=14 * GB, memory_high="max", memory_current=3 * GB,
          memory_stat=f"anon 5\ninactive_file {GB}\nactive_file 7")  # fmt: skip
    group(tmp_path / "groups/a/b", memory_max="max", memory_high=8 * GB, memory_current=2 * GB)
    group(tmp_path / "groups/a/b/c", memory_max="max", memory_high="max", memory_current=GB)
    process = process_in(tmp_path, "0::/a/b/c\n", "30 23 0:26 / {}/groups rw - cgroup2 cgroup2 rw,nsdelegate")
    assert memory_limits(process) == [Limit(8 * GB, 2 * GB), Limit(14 * GB, 2 * GB)]


def test_groups_of_version_1_are_those_of_memory(tmp_path: Path) -> None:
    group(tmp_path / "memory", memory_limit_in_bytes=UNLIMITED, memory_usage_in_bytes=9 * GB)
    group(tmp_path / "memory/x/y", memory_limit_in_bytes=14 * GB, memory_usage_in_bytes=5 * GB,
          memory_stat=f"inactive_file 1\ntotal_inactive_file {2 * GB}")  # fmt: skip
    process = process_in(
        tmp_path,
        "5:cpu,cpuacct:/other\n4:memory:/x/y\n0::/x\n",
        "31 23 0:27 / {0}/cpu rw shared:9 - cgroup cgroup rw,cpu,cpuacct\n"
        "35 23 0:31 / {0}/memory rw - cgroup cgroup rw,memory\n"
        "41 23 0:37 / {0}/unified rw - cgroup2 cgroup2 rw",
    )
    assert memory_limits(process) == [Limit(14 * GB, 3 * GB), Limit(UNLIMITED, 9 * GB)]


@pytest.mark.parametrize(
    ("path", "root"),
    [("/docker/abc", "/docker/abc"), ("/../../docker/abc", "/"), ("/", "/"), ("/elsewhere", "/docker/abc")],
)  # fmt: skip
def test_a_container_sees_its_own_group_at_the_top(tmp_path: Path, path: str, root: str) -> None:
    group(tmp_path / "groups", memory_max=14 * GB, memory_current=GB)
    process = process_in(tmp_path, f"0::{path}\n", f"30 23 0:26 {root} {{}}/groups ro - cgroup2 cgroup rw")
    assert memory_limits(process) == [Limit(14 * GB, GB)]


def test_where_nothing_is_told_nothing_is_limited(tmp_path: Path) -> None:
    assert memory_limits(tmp_path) == []
    assert memory_limits(process_in(tmp_path, "nonsense\n", "more of it")) == []


def test_this_process_has_memory() -> None:
    assert 0 < memory_free() <= memory_total()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux says what a process has")
@pytest.mark.parametrize("name", ["RLIMIT_AS", "RLIMIT_DATA"])
def test_limits_of_the_process_count(name: str) -> None:
    script = (
        "import resource; from weft.backends.hardware import memory_free, memory_total\n"
        f"resource.setrlimit(resource.{name}, (2 ** 30, 2 ** 30)); print(memory_total(), memory_free())"
    )
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    total, free = map(int, found.split())
    assert total <= GB
    assert 0 < free < total


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="elsewhere the threads of a process have one priority")
def test_a_thread_gives_way_to_others_and_to_those_that_give_way_less() -> None:
    def priority() -> int:
        return os.getpriority(os.PRIO_PROCESS, threading.get_native_id())

    seen = [priority()]

    def work() -> None:
        for _ in range(2):
            lower_priority()
            seen.append(priority())

    worker = threading.Thread(target=work)
    worker.start()
    worker.join()
    # Who runs the tests may have them give way already; 19 is the lowest priority.
    assert all(before < now or now == 19 for before, now in pairwise(seen))
    assert priority() == seen[0]
