"""ResultsInternalService: what the scheduler and the evaluators ask of the results service."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from functools import partial
from typing import Any

from services import rpc
from services.errors import ConflictError, InvalidRequestError
from services.results.calls import recorded
from services.results.decisions.evidence import read_evidence
from services.results.decisions.reads import ended_with
from services.results.digests.reads import get_digest
from services.results.experiments.preparing import Experiments
from services.results.imports import reads as imported
from services.results.intake import writes
from services.results.intake.feeds import Feed
from services.results.items import reads as item_reads
from services.results.judging.preparing import Judgings
from services.results.runs import job_reads
from services.results.scores.job_result import compute
from services.results.storage import lent_items, stored_responses
from services.results.storage.database import Database
from services.results.visibility import EVERYTHING, OPEN, OWN, Visibility
from services.results.watches import canaries
from services.results.watches.reads import is_ended, read_alarm
from services.telemetry import traces
from touchstone.v1 import job_pb2, results_internal_service_pb2_grpc
from touchstone.v1 import results_internal_service_pb2 as internal
from touchstone.v1 import results_service_pb2 as pb

_SEAL_WAIT_S = 10.0
_SEAL_WORK_S = 1.0
"""The part of a caller's deadline that is left for computing after the wait."""
_END_LOOKS, _END_LOOK_S = 100, 0.05


class ResultsInternalServicer(results_internal_service_pb2_grpc.ResultsInternalServiceServicer):
    """Raises ForbiddenError for callers that are neither services nor admins. `reads` is the setting."""

    def __init__(
        self,
        database: Database,
        results: Feed,
        usage: Feed,
        judgings: Judgings,
        experiments: Experiments,
        reads: str = OPEN,
    ) -> None:
        self._judgings = judgings
        self._experiments = experiments
        self._database = database
        self._results = results
        self._usage = usage
        self._reads = reads
        self._seals: dict[tuple[str, int], asyncio.Task[pb.SealJobResponse]] = {}
        """Seals under way, by job and attempt."""

    async def SealJob(self, request: pb.SealJobRequest, context: Any) -> pb.SealJobResponse:
        rpc.require_admin()
        job = request.job
        if not job.job_id or not job.plan:
            raise InvalidRequestError("SealJob needs the id and the plan of the job.", "job")
        await self._reached(request.results_sequence, context)
        # A caller that gives up does not end the work: the next call finds it under way, or done.
        key = job.job_id, job.attempt
        if key not in self._seals:
            self._seals[key] = seal = asyncio.create_task(self._seal(job))
            seal.add_done_callback(lambda _: self._seals.pop(key))
        return await asyncio.shield(self._seals[key])

    async def _seal(self, job: job_pb2.Job) -> pb.SealJobResponse:
        sealed = await self._database.read(lambda c: job_reads.sealed_result(c, job.job_id, job.attempt))
        if sealed is None:
            async with traces.spanning("score", job.job_id, job.attempt, {}):
                # Computed on a reader's snapshot, so that other jobs' results are stored meanwhile.
                computed = await self._database.read_long(lambda c: compute(c, job, seal=True))
                now = datetime.now(UTC)
                sealed = await self._database.write(lambda c: writes.store_seal(c, job, computed, now))
        return sealed

    async def ListStoredItems(self, request: pb.ListStoredItemsRequest, context: Any) -> pb.ListStoredItemsResponse:
        rpc.require_admin()
        await self._reached(request.results_sequence, context)
        return await self._database.read(lambda c: item_reads.list_stored_items(c, request.job_id))

    async def FindResponses(self, request: pb.FindResponsesRequest, context: Any) -> pb.FindResponsesResponse:
        rpc.require_admin()
        if request.import_id:
            return await self._database.read(lambda c: imported.find_answers(c, request))
        await self._reached(request.results_sequence, context)
        # The caller is an evaluator, which sees all; its job's owner may not.
        visible = Visibility(request.owner) if self._reads == OWN else EVERYTHING
        find = partial(stored_responses.find_responses, request=request, visible=visible)
        try:
            return await self._database.read(find)
        except ConflictError:
            if request.job_id:
                raise
            # The archive's file of a job is damaged, so its answers are found no longer.
            return await self._database.read(find)

    async def GetImport(self, request: pb.GetImportRequest, context: Any) -> pb.GetImportResponse:
        rpc.require_admin()
        return await self._database.read(lambda c: imported.get_import(c, request))

    async def AdmitCall(self, request: pb.AdmitCallRequest, context: Any) -> pb.AdmitCallResponse:
        rpc.require_admin()
        await self._reached(request.usage_sequence, context, self._usage)
        return await self._database.read(lambda c: recorded.admitted(c, request.call_id))

    async def PrepareJudging(
        self, request: internal.PrepareJudgingRequest, context: Any
    ) -> internal.PrepareJudgingResponse:
        rpc.require_admin()
        return internal.PrepareJudgingResponse(dataset=await self._judgings.prepare(request.judging))

    async def PrepareExperiment(
        self, request: internal.PrepareExperimentRequest, context: Any
    ) -> internal.PrepareExperimentResponse:
        rpc.require_admin()
        if request.check_only:
            return internal.PrepareExperimentResponse(dataset=await self._experiments.find(request.definition))
        made = await self._experiments.prepare(request.owner, request.definition)
        return internal.PrepareExperimentResponse(dataset=made)

    async def ReadEvidence(self, request: internal.ReadEvidenceRequest, context: Any) -> internal.ReadEvidenceResponse:
        rpc.require_admin()
        await self._reached(request.results_sequence, context)
        jobs = (request.baseline, request.candidate, *request.further_candidates)
        found = await self._database.read_long(lambda c: read_evidence(c, jobs, whole=False))
        return internal.ReadEvidenceResponse(decision=found)

    async def ChooseCanaries(
        self, request: internal.ChooseCanariesRequest, context: Any
    ) -> internal.ChooseCanariesResponse:
        rpc.require_admin()
        # The caller is the scheduler, which sees all; the watch's owner may not.
        visible = Visibility(request.owner) if self._reads == OWN else EVERYTHING
        chosen = await self._database.read_long(lambda c: canaries.choose(c, request.watching, visible))
        return internal.ChooseCanariesResponse(watching=chosen)

    async def ReadAlarm(self, request: internal.ReadAlarmRequest, context: Any) -> internal.ReadAlarmResponse:
        rpc.require_admin()
        await self._ended(request.job_id)
        return internal.ReadAlarmResponse(watch=await self._database.read_long(lambda c: read_alarm(c, request.job_id)))

    async def ReadEndedDecision(
        self, request: internal.ReadEndedDecisionRequest, context: Any
    ) -> internal.ReadEndedDecisionResponse:
        rpc.require_admin()
        await self._ended(request.job_id)
        found = await self._database.read_long(lambda c: ended_with(c, request.job_id))
        return internal.ReadEndedDecisionResponse(decision=found)

    async def _ended(self, job_id: str) -> None:
        """Returns once the job's end is stored, and a few seconds later if it is not. Raises NotFoundError."""
        # The scheduler has stored the end, which comes from the audit trail within moments.
        for _ in range(_END_LOOKS):
            if await self._database.read(lambda c: is_ended(c, job_id)):
                break
            await asyncio.sleep(_END_LOOK_S)

    async def ReadDigest(self, request: internal.ReadDigestRequest, context: Any) -> internal.ReadDigestResponse:
        rpc.require_admin()
        # The caller is the scheduler, which sees all; the webhook's owner may not.
        visible = Visibility(request.owner) if self._reads == OWN else EVERYTHING
        found = await lent_items.with_copies(
            self._database.lend,
            lambda copies: self._database.read_long(
                lambda c: get_digest(c, request.digest, visible, copies), waits=False
            ),
        )
        return internal.ReadDigestResponse(digest=found.digest)

    async def _reached(self, position: int, context: Any, feed: Feed | None = None) -> None:
        left = context.time_remaining()
        timeout_s = _SEAL_WAIT_S if left is None else max(0, min(_SEAL_WAIT_S, left - _SEAL_WORK_S))
        await (feed or self._results).reached(position, timeout_s)
