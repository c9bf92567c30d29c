"""What the commands that read live traffic from a Prometheus have in common."""

from recallscope.runtime.config import Settings
from recallscope.runtime.errors import LabError
from recallscope.telemetry import queries
from recallscope.telemetry.read.address import without_login
from recallscope.telemetry.read.counts import COUNTED, Counted
from recallscope.telemetry.read.figures import ReadError
from recallscope.telemetry.read.prometheus import Reading, read_prometheus
from recallscope.telemetry.read.prometheus_api import PrometheusApi

__all__ = ["DEFAULT_JOB", "read_traffic", "without_login"]

DEFAULT_JOB = "recallscope"


def read_traffic(
    url: str, *, job: str, seconds: int, settings: Settings, wanted: tuple[Counted, ...] = COUNTED
) -> Reading:
    """Read what `job` counted in the last `seconds`, from the Prometheus at `url`; blocks.

    Raises:
        LabError: nobody answers there, it is no Prometheus, it wants a login, or it refuses a query.
    """
    token = settings.telemetry.prometheus_token
    try:
        api = PrometheusApi.at(url, token=None if token is None else token.value)
        return read_prometheus(api, selector=queries.job(job), seconds=seconds, wanted=wanted)
    except ReadError as error:
        raise LabError(str(error)) from error
