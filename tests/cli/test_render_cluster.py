"""`weft render --cluster`: the workers of a real Dask cluster write what one process writes."""

from __future__ import annotations

import json
import os
import platform
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.cli.conftest import Weft
from tests.support.choices import on_processor
from weft.backends.native import llvm
from weft.backends.registry import load_registry
from weft.codegen.native.target import ISAS
from weft.errors import Source
from weft.runtime.compiling.stages import Request, build
from weft.runtime.films.offline import Offline
from weft.runtime.films.workers import RenderJob, WorkerError

# Its import takes as long as that of all other tests of a folder: here it is only looked for.
if find_spec("distributed") is None:
    pytest.skip("Dask is not installed", allow_module_level=True)

FPS = 12
# What idle processes of Dask do to observe themselves takes a twentieth of a processor each.
QUIET = {
    "DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED": "False",
    "DASK_DISTRIBUTED__ADMIN__SYSTEM_MONITOR__INTERVAL": "60s",
}
CLOTH = Path(__file__).parents[2] / "patches" / "media" / "cloth.png"
PATCH = f"""\
me<width> = 64; me<height> = 36; me<fps> = {FPS}
load("near.png")::near<r, g, b>
load("../above/far.png")::far<r, g, b>
display(near@r, far@g, fract(me@time / 3))
audio(sin(me@time * 440 * tau) * 0.3, sin(me@time * 330 * tau) * 0.3)
"""


@contextmanager
def dask(folder, kind, *words, **environment):
    """A process of a cluster, once it is ready."""
    log, scheduler = folder / f"{len(list(folder.glob('*.log')))}.log", folder / "cluster.json"
    run = [sys.executable, "-m", "dask", kind, "--scheduler-file", str(scheduler), "--no-dashboard", *words]
    with log.open("w") as file:
        env = {**os.environ, **environment, "DASK_TEMPORARY_DIRECTORY": str(folder / "scratch"), **QUIET}
        process = subprocess.Popen(run, cwd=folder, stdout=file, stderr=file, env=env)
    try:
        wait_for(process, scheduler.exists if kind == "scheduler" else lambda: "Registered to:" in log.read_text())
        yield process
    finally:
        process.kill()
        process.wait()


def wait_for(process, found):
    while not found():
        assert process.poll() is None
        time.sleep(0.02)


def worker(folder, *words, **environment):
    return dask(folder, "worker", "--no-nanny", "--nthreads", "1", *words, **environment)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """The folder of a scheduler with two workers."""
    folder = tmp_path_factory.mktemp("cluster")
    with dask(folder, "scheduler", "--port", "0"), worker(folder), worker(folder):
        yield folder


def address_of(folder):
    return json.loads((folder / "cluster.json").read_text())["address"]


@pytest.fixture(scope="module")
def weft(tmp_path_factory):
    folder = tmp_path_factory.mktemp("patch")
    found = Weft(folder / "here")
    for path in folder / "here" / "near.png", folder / "above" / "far.png":
        path.parent.mkdir()
        shutil.copy(CLOTH, path)
    found.file("a.weft", PATCH)
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("WEFT_ALLOW", str(folder / "above"))
        yield found


@pytest.mark.long
def test_a_film_has_the_same_bytes(weft, cluster):
    weft("render", "a.weft", "-o", "one.mp4", "--duration", "5")
    done = weft("render", "a.weft", "-o", "two.mp4", "--duration", "5", "--cluster", address_of(cluster))
    assert f"2 workers of {address_of(cluster)} draw" in done.stderr
    assert (weft.folder / "one.mp4").read_bytes() == (weft.folder / "two.mp4").read_bytes()
    assert not [path for path in weft.folder.iterdir() if path.name.startswith(".")]
    # The workers keep nothing.
    assert not list((cluster / "scratch").rglob("weft-*"))


@pytest.mark.long
def test_a_sequence_has_the_same_bytes_and_the_path_of_the_patch_may_be_absolute(weft, cluster):
    span = "--duration", "4"
    weft("render", "a.weft", "-o", "one-%02d.png", *span)
    weft("render", weft.folder / "a.weft", "-o", "two-%02d.png", *span, "--cluster", address_of(cluster))
    for number in range(4 * FPS):
        one, two = ((weft.folder / f"{name}-{number:02}.png").read_bytes() for name in ("one", "two"))
        assert one == two


@pytest.mark.long
def test_a_worker_that_is_killed_costs_its_task_only(weft, cluster):
    span = "--duration", "60"
    weft("render", "a.weft", "-o", "long.mp4", *span)
    with worker(cluster) as victim:
        run = [sys.executable, "-m", "weft", "render", "a.weft", "-o", "killed.mp4", *span]
        run += ["--cluster", address_of(cluster)]
        with subprocess.Popen(run, cwd=weft.folder, stderr=subprocess.PIPE, text=True) as process:
            parts = weft.folder / ".killed.mp4.parts"
            wait_for(process, lambda: parts.is_dir() and any(path.name.isdigit() for path in parts.iterdir()))
            victim.send_signal(signal.SIGKILL)
            _, words = process.communicate(timeout=200)
    assert process.returncode == 0, words
    assert words.count("\n") == 1
    assert (weft.folder / "killed.mp4").read_bytes() == (weft.folder / "long.mp4").read_bytes()


@pytest.mark.long
def test_workers_of_another_version_are_refused(weft, cluster, tmp_path):
    installed = tmp_path / "weft-0.0.0.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: weft\nVersion: 0.0.0\n")
    run = "render", "a.weft", "-o", "v.mp4", "--duration", "1", "--cluster", address_of(cluster)
    with worker(cluster, PYTHONPATH=os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])):
        words = weft(*run, code=3).stderr
    assert words.startswith("weft: weft is 0.0.0 at tcp://")
    assert words.count("\n") == 1
    assert not (weft.folder / "v.mp4").exists()


@pytest.mark.long
def test_processors_of_another_kind_are_named_unless_it_is_exact(weft, cluster):
    run = "render", "a.weft", "--duration", "1", "--cluster", address_of(cluster)
    with worker(cluster, WEFT_ISA=llvm.host().isa.name):
        words = weft(*run, "-o", "k.mp4").stderr
        assert "frames may differ in their last bits, since these processors draw, and it is not --exact: " in words
        words = weft(*run, "-o", "x.mp4", "--exact").stderr
        assert words.count("\n") == 1
    weft("render", "a.weft", "-o", "y.mp4", "--duration", "1", "--exact")
    assert (weft.folder / "x.mp4").read_bytes() == (weft.folder / "y.mp4").read_bytes()


@pytest.mark.long
@pytest.mark.skipif(
    platform.libc_ver()[0] != "glibc" or not llvm.runs_here(ISAS["avx2"]),
    reason="only glibc can be told to leave out instructions, and has others for them",
)
def test_c_libraries_of_another_kind_are_named_if_it_is_exact(weft, cluster):
    run = "render", "a.weft", "-o", "c.mp4", "--duration", "1", "--exact", "--cluster", address_of(cluster)
    with worker(cluster, GLIBC_TUNABLES="glibc.cpu.hwcaps=-AVX2,-FMA,-AVX2_Usable,-FMA_Usable"):
        words = weft(*run).stderr
    assert "frames may differ in their last bits, since these C libraries are used: glibc " in words


@pytest.mark.long
def test_a_scheduler_that_does_not_answer_is_named(weft):
    words = weft("render", "a.weft", "-o", "n.mp4", "--duration", "1", "--cluster", "tcp://127.0.0.1:9", code=3).stderr
    assert words == "weft: no scheduler answers at tcp://127.0.0.1:9\n"
    assert not (weft.folder / "n.mp4").exists()


@pytest.mark.long
def test_what_listens_and_says_nothing_is_no_scheduler(weft):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"tcp://127.0.0.1:{silent.getsockname()[1]}"
        words = weft("render", "a.weft", "-o", "n.mp4", "--duration", "1", "--cluster", address, code=3).stderr
    assert words == f"weft: no scheduler answers at {address}\n"


@pytest.mark.long
def test_what_answers_in_another_language_is_no_scheduler(weft):
    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=_greet, args=(server, b"HTTP/1.1 400 Bad Request\r\n\r\n"), daemon=True).start()
        address = f"tcp://127.0.0.1:{server.getsockname()[1]}"
        words = weft("render", "a.weft", "-o", "a.mkv", "--to", "1", "--cluster", address, code=3).stderr
    assert words == f"weft: what answers at {address} is no scheduler of Dask\n"


def _greet(server, greeting):
    with suppress(OSError):  # the server is closed
        while True:
            connection, _ = server.accept()
            connection.sendall(greeting)


@pytest.mark.long
@pytest.mark.timeout(300)
@pytest.mark.parametrize("end", [signal.SIGSTOP, signal.SIGKILL])
def test_a_scheduler_that_falls_silent_ends_the_film_and_what_is_complete_is_kept(weft, tmp_path, end):
    with dask(tmp_path, "scheduler", "--port", "0") as scheduler, worker(tmp_path):
        run = [sys.executable, "-m", "weft", "render", "a.weft", "-o", "silent.mp4", "--duration", "120"]
        run += ["--cluster", address_of(tmp_path)]
        with subprocess.Popen(run, cwd=weft.folder, stderr=subprocess.PIPE, text=True) as process:
            parts = weft.folder / ".silent.mp4.parts"
            wait_for(process, lambda: parts.is_dir() and any(path.name.isdigit() for path in parts.iterdir()))
            scheduler.send_signal(end)
            _, words = process.communicate(timeout=200)
    assert process.returncode == 3
    why = "does not answer any more" if end == signal.SIGSTOP else "has gone"
    assert f"silent.mp4 cannot be written: the scheduler at {address_of(tmp_path)} {why}; " in words
    assert "frames are kept, and the same command continues from there" in words
    assert not (weft.folder / "silent.mp4").exists()
    shutil.rmtree(parts)


@pytest.mark.long
def test_a_connection_that_dask_has_given_up_is_told(cluster):
    """In place of an error, Dask says then that there is nothing."""
    made = build(Request(Source("a.weft", "display(me@x)\n"), load_registry().contexts))
    backend = "vector"
    job = RenderJob(made, backend, None, 1, "", 1, Offline(made, on_processor(backend)).fingerprint)
    from weft.runtime.films.cluster import ClusterPool

    pool = ClusterPool(address_of(cluster), job)
    pool._client.sync(pool._client._close)  # as it does by itself
    with pytest.raises(WorkerError, match="has gone"):
        pool._workers()
    pool.close()


def test_an_address_is_checked(weft):
    words = weft("render", "a.weft", "-o", "n.mp4", "--duration", "1", "--cluster", "somewhere", code=2).stderr
    assert "'somewhere' is not an address such as tcp://127.0.0.1:8786" in words
    words = weft("render", "a.weft", "-o", "n.png", "--cluster", "tcp://127.0.0.1:9", code=2).stderr
    assert "--cluster is for sequences and films" in words
