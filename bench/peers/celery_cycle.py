"""celery_cycle.py REDIS_SOCKET SECONDS: prints the figures of one cycle as JSON."""
import json
import os
import pathlib
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
os.environ["REDIS_SOCKET"] = sys.argv[1]
sys.dont_write_bytecode = True
sys.path.insert(0, str(HERE))

import redis  # noqa: E402
from celery_tasks import app, nothing  # noqa: E402

RUN_SECONDS_MAX = 60


def accept(seconds):
    """How many were accepted in how many seconds."""
    began, count = time.monotonic(), 0
    with app.producer_pool.acquire(block=True) as producer:
        while time.monotonic() - began < seconds:
            nothing.apply_async((1,), producer=producer)
            count += 1
    return count, time.monotonic() - began


def open_jobs(broker):
    return broker.llen("celery") + broker.hlen("unacked")


def run(broker, count):
    """Seconds for `count` jobs; the worker's own start is not counted."""
    worker = subprocess.Popen(
        [sys.executable, "-B", "-m", "celery", "-A", "celery_tasks", "worker", "-c", "2", "--without-gossip", "--without-mingle",
         "-l", "ERROR"], cwd=HERE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        limit = time.monotonic() + RUN_SECONDS_MAX
        while (left := open_jobs(broker)) == count:
            if worker.poll() is not None or time.monotonic() > limit:
                sys.exit("the worker did not start")
            time.sleep(0.005)
        began = time.monotonic()
        while open_jobs(broker) > 0:
            if time.monotonic() > limit:
                sys.exit(f"jobs were left after {RUN_SECONDS_MAX} s")
            time.sleep(0.005)
        return (time.monotonic() - began) * count / left
    finally:
        worker.terminate()
        worker.wait()


def main():
    broker = redis.Redis(unix_socket_path=sys.argv[1])
    count, accept_seconds = accept(float(sys.argv[2]))
    run_seconds = run(broker, count)
    print(json.dumps({"accepts_per_s": count / accept_seconds, "runs_per_s": count / run_seconds,
                      "cycle_per_s": count / (accept_seconds + run_seconds)}))


main()
