"""The addresses of all pages."""

from __future__ import annotations

from starlette.routing import Route

from services.gateway.access.oidc import BEGIN
from services.gateway.access.oidc_settings import CALLBACK
from services.gateway.http.middleware import EXPERIMENT_FORM, UPLOAD_PAGE
from services.gateway.pages.boards import leaderboard, overview
from services.gateway.pages.boards.digest import digest_page
from services.gateway.pages.compare.page import compare
from services.gateway.pages.datasets import listing as datasets
from services.gateway.pages.datasets import page as dataset
from services.gateway.pages.datasets.live import all_runs
from services.gateway.pages.decisions import listing as decisions
from services.gateway.pages.decisions import page as decision
from services.gateway.pages.decisions import start as new_decision
from services.gateway.pages.events import events
from services.gateway.pages.experiments import page as experiments
from services.gateway.pages.experiments.start import form_page, start_experiment
from services.gateway.pages.items.listing import annotate, item, items
from services.gateway.pages.items.side_by_side import prefer, side_by_side, verdict
from services.gateway.pages.jobs.history import cancel_selected, delete_selected, history, retry_selected
from services.gateway.pages.jobs.judges import judges
from services.gateway.pages.jobs.log import log_page
from services.gateway.pages.jobs.page import delete, job_page, mark, retry, stop
from services.gateway.pages.jobs.rating import agreement_page, rate, rate_page
from services.gateway.pages.layout.jump import jump
from services.gateway.pages.layout.login import begin, finish, login, logout
from services.gateway.pages.operations import queue, settings, watch
from services.gateway.pages.reports import comparison_report, job_report
from services.gateway.pages.runs.judge import judge_page, start_judge
from services.gateway.pages.runs.page import baselines, run_page, start
from services.gateway.pages.runs.reuse import again, rerun, rescore

routes = [
    Route("/", overview.home),
    Route("/overview", overview.overview),
    Route("/overview/export", overview.export),
    Route("/leaderboard", leaderboard.leaderboard),
    Route("/leaderboard/export", leaderboard.export),
    Route("/run", run_page),
    Route("/run", start, methods=["POST"]),
    Route("/baselines", baselines, methods=["POST"]),
    Route("/jobs", history),
    Route("/jump", jump),
    Route("/events", events),
    Route("/queue", queue.queue_page),
    Route("/queue/{job_id}/priority", queue.set_priority, methods=["POST"]),
    Route("/queue/{job_id}/cancel", queue.cancel, methods=["POST"]),
    Route("/evaluators/{evaluator}/drain", queue.drain, methods=["POST"]),
    Route("/evaluators/{evaluator}/resume", queue.resume, methods=["POST"]),
    Route("/jobs/retry", retry_selected, methods=["POST"]),
    Route("/jobs/cancel", cancel_selected, methods=["POST"]),
    Route("/jobs/delete", delete_selected, methods=["POST"]),
    Route("/settings", settings.settings_page),
    Route("/settings/tokens", settings.create_token, methods=["POST"]),
    Route("/settings/tokens/{digest}/revoke", settings.revoke_token, methods=["POST"]),
    Route("/settings/webhooks", settings.create_webhook, methods=["POST"]),
    Route("/settings/webhooks/{webhook_id}/delete", settings.delete_webhook, methods=["POST"]),
    Route("/settings/deliveries/{delivery_id}/redeliver", settings.redeliver, methods=["POST"]),
    Route("/settings/schedules", settings.create_schedule, methods=["POST"]),
    Route("/settings/schedules/{schedule_id}/pause", settings.pause_schedule, methods=["POST"]),
    Route("/settings/schedules/{schedule_id}/resume", settings.resume_schedule, methods=["POST"]),
    Route("/settings/schedules/{schedule_id}/delete", settings.delete_schedule, methods=["POST"]),
    Route("/digest", digest_page),
    Route("/settings/watches", watch.start_watch, methods=["POST"]),
    Route("/watches/{schedule_id}", watch.watch_page),
    Route("/jobs/{job_id}", job_page),
    Route("/jobs/{job_id}/log", log_page),
    Route("/jobs/{job_id}/report.html", job_report),
    Route("/jobs/{job_id}/mark", mark, methods=["POST"]),
    Route("/jobs/{job_id}/stop", stop, methods=["POST"]),
    Route("/jobs/{job_id}/retry", retry, methods=["POST"]),
    Route("/jobs/{job_id}/delete", delete, methods=["POST"]),
    Route("/jobs/{job_id}/rescore", rescore, methods=["POST"]),
    Route("/jobs/{job_id}/again", again, methods=["POST"]),
    Route("/jobs/{job_id}/rerun", rerun, methods=["POST"]),
    Route("/jobs/{job_id}/judges", judges),
    Route("/jobs/{job_id}/judge", judge_page),
    Route("/jobs/{job_id}/judge", start_judge, methods=["POST"]),
    Route("/jobs/{job_id}/rate", rate_page),
    Route("/jobs/{job_id}/rate", rate, methods=["POST"]),
    Route("/jobs/{job_id}/rate/agreement", agreement_page),
    Route("/jobs/{job_id}/items", items),
    Route("/jobs/{job_id}/items/{task}/{item:int}", item),
    Route("/jobs/{job_id}/items/{task}/{item:int}/annotation", annotate, methods=["POST"]),
    Route("/compare", compare),
    Route("/compare/report.html", comparison_report),
    Route("/decisions", decisions.index),
    Route("/decisions/new", new_decision.form_page),
    Route("/decisions/new", new_decision.start, methods=["POST"]),
    Route("/decisions/{decision_id}", decision.show),
    Route("/decisions/{decision_id}/stop", decision.stop, methods=["POST"]),
    Route("/side-by-side", side_by_side),
    Route("/side-by-side/verdict", verdict),
    Route("/side-by-side/preference", prefer, methods=["POST"]),
    Route("/experiments", experiments.index),
    Route(EXPERIMENT_FORM, form_page),
    Route(EXPERIMENT_FORM, start_experiment, methods=["POST"]),
    Route("/experiments/{name}", experiments.show),
    Route("/datasets", datasets.index),
    Route(UPLOAD_PAGE, datasets.upload, methods=["POST"]),
    Route("/datasets/runs", all_runs),
    Route("/datasets/{dataset_id}", dataset.show),
    Route("/datasets/{dataset_id}/runs", dataset.runs),
    Route("/datasets/{dataset_id}/run", dataset.start, methods=["POST"]),
    Route("/datasets/{dataset_id}/delete", datasets.delete, methods=["POST"]),
    Route("/login", login, methods=["GET", "POST"]),
    Route(BEGIN, begin),
    Route(CALLBACK, finish),
    Route("/logout", logout, methods=["POST"]),
]
