"""What a night looks like: documents for programs, pages and tables for people.

Every output is made from one ``NightlyResult`` and asks ``verdict`` whether the night was good, so
that none can be greener than another. Who writes which file where is decided by the pipeline.
"""

from agent_gym.reporting.nightly.console import (
    ConsoleProgress,
    comparison_table,
    run_view,
    summary_view,
)
from agent_gym.reporting.nightly.documents import (
    baseline_document,
    diff_document,
    document_text,
    metric_means,
    report_document,
    schema_of,
)
from agent_gym.reporting.nightly.junit import junit_xml
from agent_gym.reporting.nightly.markdown import markdown_summary
from agent_gym.reporting.nightly.page import html_page
from agent_gym.reporting.nightly.prometheus import prometheus_text
from agent_gym.reporting.nightly.run import (
    BaselineRecord,
    Code,
    NightlyResult,
    NightlyRun,
    Past,
    PastNight,
    SeedLists,
)
from agent_gym.reporting.nightly.verdict import headline, light, troubles, verdict
from agent_gym.reporting.text import replay_command

__all__ = [
    "BaselineRecord",
    "Code",
    "ConsoleProgress",
    "NightlyResult",
    "NightlyRun",
    "Past",
    "PastNight",
    "SeedLists",
    "baseline_document",
    "comparison_table",
    "diff_document",
    "document_text",
    "headline",
    "html_page",
    "junit_xml",
    "light",
    "markdown_summary",
    "metric_means",
    "prometheus_text",
    "replay_command",
    "report_document",
    "run_view",
    "schema_of",
    "summary_view",
    "troubles",
    "verdict",
]
