#!/usr/bin/env python3
"""`quire serve` under a service manager: what it says on NOTIFY_SOCKET, and that nobody needs to listen."""
import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import script  # noqa: E402
import server  # noqa: E402


def start(data, **env):
    return subprocess.Popen([str(script.BUILD / "quire"), "serve", "--listen", "127.0.0.1:0"], text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=server.environment(data, **env))


def end(process):
    process.send_signal(signal.SIGTERM)
    out, errors = process.communicate(timeout=60)
    assert process.returncode == 0, (process.returncode, out, errors)


def listen(name):
    manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    manager.bind(name)
    manager.settimeout(50)
    return manager


def run_with(name, environment_name):
    with tempfile.TemporaryDirectory() as data, listen(name) as manager:
        process = start(data, NOTIFY_SOCKET=environment_name, WATCHDOG_USEC="20000")
        assert manager.recv(200) == b"READY=1"
        assert process.stdout.readline().startswith("listening on ")  # it was when it said so
        for _ in range(3):
            assert manager.recv(200) == b"WATCHDOG=1"
        process.send_signal(signal.SIGTERM)
        while (said := manager.recv(200)) == b"WATCHDOG=1":
            pass
        assert said == b"STOPPING=1", said
        end(process)


def test_a_manager_is_told_that_it_is_ready_lives_and_ends():
    with tempfile.TemporaryDirectory() as folder:
        run_with(folder + "/notify", folder + "/notify")


def test_the_manager_may_have_an_abstract_name():
    name = f"quire-notify-{os.getpid()}"
    run_with("\0" + name, "@" + name)


def test_a_watchdog_of_another_process_is_not_ours():
    with tempfile.TemporaryDirectory() as folder, listen(folder + "/notify") as manager:
        process = start(folder + "/data", NOTIFY_SOCKET=folder + "/notify", WATCHDOG_USEC="2000", WATCHDOG_PID="1")
        assert manager.recv(200) == b"READY=1"
        end(process)
        assert manager.recv(200) == b"STOPPING=1"  # and nothing between


def test_nobody_has_to_listen():
    with tempfile.TemporaryDirectory() as folder:
        process = start(folder + "/data", NOTIFY_SOCKET=folder + "/nobody", WATCHDOG_USEC="20000")
        assert process.stdout.readline().startswith("listening on ")
        end(process)


if __name__ == "__main__":
    script.main(globals())
