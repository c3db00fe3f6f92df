"""The Celery application of bench/peers/run. REDIS_SOCKET names the broker."""
import os

from celery import Celery

app = Celery("celery_tasks", broker=f"redis+socket://{os.environ['REDIS_SOCKET']}")
app.conf.task_ignore_result = True
app.conf.task_acks_late = True  # a job is not lost with its worker, as everywhere else here
app.conf.worker_prefetch_multiplier = 64


@app.task
def nothing(part):
    del part
