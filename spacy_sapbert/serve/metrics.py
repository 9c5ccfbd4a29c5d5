"""What a service counts, in the format of Prometheus."""

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    generate_latest,
)

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256)


class Metrics:
    """The counters of one service; labels are routes, methods and statuses only."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self.requests = Counter(
            "sapbert_requests",
            "Requests that were answered.",
            ("route", "method", "status"),
            registry=self.registry,
        )
        self.seconds = Histogram(
            "sapbert_request_seconds",
            "Seconds from the headers of a request to the end of its answer.",
            ("route",),
            buckets=SECONDS,
            registry=self.registry,
        )
        self.in_flight = Gauge(
            "sapbert_requests_in_flight",
            "Requests that are not answered yet.",
            registry=self.registry,
        )
        self.waiting = Gauge(
            "sapbert_jobs_waiting",
            "Jobs that wait for the linking thread.",
            registry=self.registry,
        )
        self.batch_jobs = Histogram(
            "sapbert_batch_jobs",
            "Jobs that were linked together.",
            buckets=SIZES,
            registry=self.registry,
        )
        self.linked = Counter(
            "sapbert_linked",
            "Documents and mentions that were linked.",
            ("kind",),
            registry=self.registry,
        )

    def format(self) -> bytes:
        """Return all of them as text."""
        return generate_latest(self.registry)
