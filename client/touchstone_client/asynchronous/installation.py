"""What can be run, what waits, and what runs on a schedule."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable

from services.words import decisions
from services.words.watches import DEFAULT_ERROR, DEFAULT_ITEMS
from touchstone.v1 import (
    endpoint_pb2,
    evaluator_pb2,
    job_pb2,
    queue_pb2,
    schedule_pb2,
    scheduler_service_pb2,
    set_aside_pb2,
    suite_pb2,
    webhook_pb2,
)
from touchstone_client import requests, targets
from touchstone_client.asynchronous.calls import Calls
from touchstone_client.targets import Target


class Installation(Calls):
    """Endpoints, models, suites, evaluators, the queue, schedules, webhooks and messages set aside."""

    async def queue(self, project_id: int = 0) -> queue_pb2.Queue:
        """Running and waiting jobs; positions in the queue count all jobs."""
        request = scheduler_service_pb2.GetQueueRequest(project_id=project_id)
        answer = await self._ask(request, scheduler_service_pb2.GetQueueResponse)
        return answer.queue

    async def evaluators(self) -> AsyncIterator[evaluator_pb2.Evaluator]:
        request = scheduler_service_pb2.ListEvaluatorsRequest(page_size=100)
        async for page in self._pages(request, scheduler_service_pb2.ListEvaluatorsResponse):
            for found in page.evaluators:
                yield found

    async def endpoints(self) -> AsyncIterator[endpoint_pb2.Endpoint]:
        """Every endpoint ever announced, without models."""
        request = scheduler_service_pb2.ListEndpointsRequest(page_size=100)
        async for page in self._pages(request, scheduler_service_pb2.ListEndpointsResponse):
            for found in page.endpoints:
                yield found

    async def models(self, endpoint: str) -> AsyncIterator[endpoint_pb2.Model]:
        """Models of one endpoint. NotFoundError for one that was never announced."""
        request = scheduler_service_pb2.ListModelsRequest(endpoint=endpoint, page_size=1000)
        async for page in self._pages(request, scheduler_service_pb2.ListModelsResponse):
            for found in page.models:
                yield found

    async def targets(self, models: Iterable[str], endpoint: str = "") -> list[Target]:
        """Models with their endpoints, from words such as `model` and `model@endpoint`; `endpoint` is for words without
        one. NotFoundError for a model that no endpoint lists, InvalidError for one that several endpoints list and for
        one that is named twice."""
        endpoints = [known async for known in self.endpoints()]
        wanted = [targets.said(word, endpoint, endpoints) for word in models]
        listing: dict[str, set[str]] = {}
        if not all(target.endpoint for target in wanted):
            for e in endpoints:
                listing[e.endpoint] = {known.model async for known in self.models(e.endpoint)}
        return targets.placed(wanted, listing)

    async def suites(self) -> AsyncIterator[suite_pb2.Suite]:
        """Suites that some evaluator can read."""
        request = scheduler_service_pb2.ListSuitesRequest(page_size=100)
        async for page in self._pages(request, scheduler_service_pb2.ListSuitesResponse):
            for found in page.suites:
                yield found

    async def drain_evaluator(self, evaluator: str) -> evaluator_pb2.Evaluator:
        """Lets it finish what it has begun and take no new work, until it is resumed; for admins."""
        return await self._set_drain(evaluator, drain=True)

    async def resume_evaluator(self, evaluator: str) -> evaluator_pb2.Evaluator:
        """Lets a drained evaluator take work again; for admins."""
        return await self._set_drain(evaluator, drain=False)

    async def _set_drain(self, evaluator: str, *, drain: bool) -> evaluator_pb2.Evaluator:
        request = scheduler_service_pb2.SetEvaluatorDrainRequest(evaluator=evaluator, drain=drain)
        answer = await self._ask(request, scheduler_service_pb2.SetEvaluatorDrainResponse)
        return answer.evaluator

    async def create_schedule(
        self, cron: str, spec: job_pb2.JobSpec, *, time_zone: str = "", label: str = "", request_id: str = ""
    ) -> schedule_pb2.Schedule:
        """Runs a job again and again. `cron` has five fields; `time_zone` is an IANA name, UTC when empty."""
        request = requests.create_schedule(cron, spec, time_zone, label, request_id)
        answer = await self._ask(request, scheduler_service_pb2.CreateScheduleResponse)
        return answer.schedule

    async def schedule_decision(
        self,
        cron: str,
        baseline: job_pb2.JobSpec,
        candidate: job_pb2.JobSpec,
        *further: job_pb2.JobSpec,
        error: float = decisions.DEFAULT_ERROR,
        margin: float = 0.0,
        seed: int = 0,
        time_zone: str = "",
        label: str = "",
        request_id: str = "",
    ) -> schedule_pb2.Schedule:
        """Starts a decision again and again, as `start_decision` does, each in another order. None starts while
        the last one has not ended. `decisions` with the schedule's id lists what they found."""
        decision = requests.start_decision(baseline, candidate, further, error, margin, seed, "")
        request = requests.schedule_decision(cron, decision, time_zone, label, request_id)
        answer = await self._ask(request, scheduler_service_pb2.CreateScheduleResponse)
        return answer.schedule

    async def start_watch(
        self,
        reference: str,
        cron: str,
        *,
        again: str = "",
        endpoint: str = "",
        model: str = "",
        time_zone: str = "",
        label: str = "",
        items: int = DEFAULT_ITEMS,
        error: float = DEFAULT_ERROR,
        seed: int = 0,
        request_id: str = "",
    ) -> schedule_pb2.Schedule:
        """Watches whether an endpoint still answers as in the completed job `reference`: its schedule asks some of that
        job's `items` each time. `again` is a second run of the same model, which shows how much answers differ by
        chance. `endpoint` and `model` are the reference's when empty. `error` is the chance that a model that has not
        changed ever raises the alarm. `read_watch` says what the answers show."""
        request = requests.start_watch(
            reference, cron, again, endpoint, model, time_zone, label, items, error, seed, request_id
        )
        answer = await self._ask(request, scheduler_service_pb2.StartWatchResponse)
        return answer.schedule

    async def schedules(self, owner: str = "", project_id: int = 0) -> AsyncIterator[schedule_pb2.Schedule]:
        request = scheduler_service_pb2.ListSchedulesRequest(owner=owner, project_id=project_id, page_size=100)
        async for page in self._pages(request, scheduler_service_pb2.ListSchedulesResponse):
            for found in page.schedules:
                yield found

    async def pause_schedule(self, schedule_id: str) -> schedule_pb2.Schedule:
        """It makes no jobs until it is resumed."""
        return await self._set_paused(schedule_id, paused=True)

    async def resume_schedule(self, schedule_id: str) -> schedule_pb2.Schedule:
        """Times that passed meanwhile are not made up for."""
        return await self._set_paused(schedule_id, paused=False)

    async def _set_paused(self, schedule_id: str, *, paused: bool) -> schedule_pb2.Schedule:
        request = scheduler_service_pb2.SetSchedulePausedRequest(schedule_id=schedule_id, paused=paused)
        answer = await self._ask(request, scheduler_service_pb2.SetSchedulePausedResponse)
        return answer.schedule

    async def delete_schedule(self, schedule_id: str) -> None:
        request = scheduler_service_pb2.DeleteScheduleRequest(schedule_id=schedule_id)
        await self._ask(request, scheduler_service_pb2.DeleteScheduleResponse)

    async def create_webhook(
        self, url: str, events: Iterable[str] = (), project_id: int = 0
    ) -> tuple[webhook_pb2.Webhook, str]:
        """Registers a URL that is called when one's own jobs finish. Returns the secret that signs the calls: it is
        shown only now."""
        request = scheduler_service_pb2.CreateWebhookRequest(url=url, events=events, project_id=project_id)
        made = await self._ask(request, scheduler_service_pb2.CreateWebhookResponse)
        return made.webhook, made.secret

    async def webhooks(self, project_id: int = 0) -> AsyncIterator[webhook_pb2.Webhook]:
        request = scheduler_service_pb2.ListWebhooksRequest(project_id=project_id, page_size=100)
        async for page in self._pages(request, scheduler_service_pb2.ListWebhooksResponse):
            for found in page.webhooks:
                yield found

    async def delete_webhook(self, webhook_id: str) -> None:
        request = scheduler_service_pb2.DeleteWebhookRequest(webhook_id=webhook_id)
        await self._ask(request, scheduler_service_pb2.DeleteWebhookResponse)

    async def dead_deliveries(self) -> AsyncIterator[webhook_pb2.Delivery]:
        """Webhook calls that were given up, newest first."""
        request = scheduler_service_pb2.ListDeadDeliveriesRequest(page_size=100)
        async for page in self._pages(request, scheduler_service_pb2.ListDeadDeliveriesResponse):
            for found in page.deliveries:
                yield found

    async def redeliver(self, delivery_id: str) -> webhook_pb2.Delivery:
        """Tries a webhook call that was given up once more."""
        request = scheduler_service_pb2.RedeliverWebhookRequest(delivery_id=delivery_id)
        answer = await self._ask(request, scheduler_service_pb2.RedeliverWebhookResponse)
        return answer.delivery

    async def set_aside_messages(self) -> AsyncIterator[set_aside_pb2.SetAsideMessage]:
        """Messages that services could not handle, oldest first. NotAllowedError for callers who are not admins."""
        request = scheduler_service_pb2.ListSetAsideMessagesRequest(page_size=100)
        async for page in self._pages(request, scheduler_service_pb2.ListSetAsideMessagesResponse):
            for found in page.messages:
                yield found
