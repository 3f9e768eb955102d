from touchstone.v1 import dataset_pb2 as _dataset_pb2
from touchstone.v1 import decision_pb2 as _decision_pb2
from touchstone.v1 import digest_pb2 as _digest_pb2
from touchstone.v1 import job_pb2 as _job_pb2
from touchstone.v1 import results_service_pb2 as _results_service_pb2
from touchstone.v1 import watch_pb2 as _watch_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ReadEvidenceRequest(_message.Message):
    __slots__ = ("baseline", "candidate", "further_candidates", "results_sequence")
    BASELINE_FIELD_NUMBER: _ClassVar[int]
    CANDIDATE_FIELD_NUMBER: _ClassVar[int]
    FURTHER_CANDIDATES_FIELD_NUMBER: _ClassVar[int]
    RESULTS_SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    baseline: _job_pb2.Job
    candidate: _job_pb2.Job
    further_candidates: _containers.RepeatedCompositeFieldContainer[_job_pb2.Job]
    results_sequence: int
    def __init__(self, baseline: _Optional[_Union[_job_pb2.Job, _Mapping]] = ..., candidate: _Optional[_Union[_job_pb2.Job, _Mapping]] = ..., further_candidates: _Optional[_Iterable[_Union[_job_pb2.Job, _Mapping]]] = ..., results_sequence: _Optional[int] = ...) -> None: ...

class ReadEvidenceResponse(_message.Message):
    __slots__ = ("decision",)
    DECISION_FIELD_NUMBER: _ClassVar[int]
    decision: _decision_pb2.Decision
    def __init__(self, decision: _Optional[_Union[_decision_pb2.Decision, _Mapping]] = ...) -> None: ...

class ChooseCanariesRequest(_message.Message):
    __slots__ = ("watching", "owner")
    WATCHING_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    watching: _job_pb2.Watching
    owner: str
    def __init__(self, watching: _Optional[_Union[_job_pb2.Watching, _Mapping]] = ..., owner: _Optional[str] = ...) -> None: ...

class ChooseCanariesResponse(_message.Message):
    __slots__ = ("watching",)
    WATCHING_FIELD_NUMBER: _ClassVar[int]
    watching: _job_pb2.Watching
    def __init__(self, watching: _Optional[_Union[_job_pb2.Watching, _Mapping]] = ...) -> None: ...

class ReadAlarmRequest(_message.Message):
    __slots__ = ("job_id",)
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    def __init__(self, job_id: _Optional[str] = ...) -> None: ...

class ReadAlarmResponse(_message.Message):
    __slots__ = ("watch",)
    WATCH_FIELD_NUMBER: _ClassVar[int]
    watch: _watch_pb2.Watch
    def __init__(self, watch: _Optional[_Union[_watch_pb2.Watch, _Mapping]] = ...) -> None: ...

class ReadEndedDecisionRequest(_message.Message):
    __slots__ = ("job_id",)
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    def __init__(self, job_id: _Optional[str] = ...) -> None: ...

class ReadEndedDecisionResponse(_message.Message):
    __slots__ = ("decision",)
    DECISION_FIELD_NUMBER: _ClassVar[int]
    decision: _decision_pb2.Decision
    def __init__(self, decision: _Optional[_Union[_decision_pb2.Decision, _Mapping]] = ...) -> None: ...

class ReadDigestRequest(_message.Message):
    __slots__ = ("digest", "owner")
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    digest: _results_service_pb2.GetDigestRequest
    owner: str
    def __init__(self, digest: _Optional[_Union[_results_service_pb2.GetDigestRequest, _Mapping]] = ..., owner: _Optional[str] = ...) -> None: ...

class ReadDigestResponse(_message.Message):
    __slots__ = ("digest",)
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    digest: _digest_pb2.Digest
    def __init__(self, digest: _Optional[_Union[_digest_pb2.Digest, _Mapping]] = ...) -> None: ...

class PrepareJudgingRequest(_message.Message):
    __slots__ = ("judging",)
    JUDGING_FIELD_NUMBER: _ClassVar[int]
    judging: _job_pb2.Judging
    def __init__(self, judging: _Optional[_Union[_job_pb2.Judging, _Mapping]] = ...) -> None: ...

class PrepareJudgingResponse(_message.Message):
    __slots__ = ("dataset",)
    DATASET_FIELD_NUMBER: _ClassVar[int]
    dataset: _dataset_pb2.Dataset
    def __init__(self, dataset: _Optional[_Union[_dataset_pb2.Dataset, _Mapping]] = ...) -> None: ...

class PrepareExperimentRequest(_message.Message):
    __slots__ = ("owner", "definition", "check_only")
    OWNER_FIELD_NUMBER: _ClassVar[int]
    DEFINITION_FIELD_NUMBER: _ClassVar[int]
    CHECK_ONLY_FIELD_NUMBER: _ClassVar[int]
    owner: str
    definition: str
    check_only: bool
    def __init__(self, owner: _Optional[str] = ..., definition: _Optional[str] = ..., check_only: _Optional[bool] = ...) -> None: ...

class PrepareExperimentResponse(_message.Message):
    __slots__ = ("dataset",)
    DATASET_FIELD_NUMBER: _ClassVar[int]
    dataset: _dataset_pb2.Dataset
    def __init__(self, dataset: _Optional[_Union[_dataset_pb2.Dataset, _Mapping]] = ...) -> None: ...
