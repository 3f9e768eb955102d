"""Reads the definition of an experiment: the mapping of a YAML or JSON file, or the body of a request.

What is wrong is found at once, every problem with its field, and nothing is guessed: unknown names are refused.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from functools import cache
from itertools import islice
from typing import Any

from services import numbers
from services.chat_requests.faults import RefusedError
from services.chat_requests.strict_json import dump
from services.experiments import grid, plain_values, prompts, scenarios
from services.experiments.definition import KEEP_ALIVE, MAX_MODEL_B, N_TIPS, Definition, Model, too_large
from services.experiments.fields import NAME, NAME_RULE, DefinitionError, Fields, suggestion
from services.experiments.prompts import Prompt
from services.experiments.scenarios import MOST_SCENARIOS, REFERENCE, SETS, TIPS, Scenario
from services.words import references, refusals, rubrics
from services.words.enums import PRIORITIES
from services.words.fields import INT64_MAX, number_problem
from services.words.job_options import ALL, MOST_MODEL
from services.words.jobs import MOST_AT_ONCE
from services.words.sampling import BY_REST_NAME, PARAMETERS
from touchstone.v1.rubric_pb2 import Rubric

RUBRIC = "tip-v1"
"""Ships with Touchstone."""
MOST_MODELS, MOST_PROMPTS, MOST_ROWS = MOST_AT_ONCE, 100, 100_000
MOST_REPEATS, MOST_TIPS, MOST_MODEL_B = 10, 20, numbers.MOST_PARAMETERS_B
MOST_TEMPLATES = 256 * 1024
"""Bytes of all templates: they are kept with the dataset."""
MOST_SCENARIO = 60 * 1024
"""Bytes of a scenario as JSON: it becomes the metadata of rows."""
NAMES = (
    *("name", "models", "provider", "prompts", "scenarios", "repeats", "n_tips", "diversity", *BY_REST_NAME),
    *("max_model_b", "max_judge_b", "keep_alive", "rubric", "budget_usd", "priority"),
)
ALIASES = {"experiment": "name", "n_scenarios": "scenarios"}
"""Short forms: another word for the name, and the number of scenarios of the set "tips"."""
_LISTS = ("models", "prompts")
"""Also short: names in one text, separated by commas."""
_FORM = "new"
"""In the path of the page that starts experiments, where others have their name."""
_MOST_FIELD_NAME = 200
_MOST_FAULTS = 100
"""Values without a form in JSON that are named."""


def read(value: Any, *, providers: Collection[str] | None = None, default_provider: str = "") -> Definition:
    """The definition. Absent and null fields have their defaults. `providers` are the names of the endpoints, if the
    caller knows them; models without a provider are those of the definition's `provider`, or else of the default one.
    Raises DefinitionError.

    It fills every prompt with every scenario, so that no row fails later: up to seconds for the largest definitions.
    """
    if wrong := [*islice(plain_values.faults(value), _MOST_FAULTS)]:
        raise DefinitionError(wrong)
    if not isinstance(value, dict):
        raise DefinitionError([("", "The definition must be an object with name, models, prompts and scenarios.")])
    return _Reader(value, providers, default_provider).read()


@cache
def shipped_rubric() -> Rubric:
    """The rubric "tip-v1"."""
    return rubrics.parse(prompts.data("rubrics", f"{RUBRIC}.json"))


class _Reader(Fields):
    def __init__(self, value: Mapping[str, Any], providers: Collection[str] | None, default_provider: str) -> None:
        super().__init__(value)
        self._providers = providers
        self._default_provider = default_provider
        self._model_paths: dict[Model, str] = {}
        self.only("", value, NAMES, ALIASES)
        self._check_aliases()
        self._split_lists()
        self._choose_provider()

    def read(self) -> Definition:
        definition = Definition(
            name=self._name("experiment" if "name" not in self.value and "experiment" in self.value else "name"),
            models=self._models(),
            prompts=self._prompts(),
            scenarios=self._scenarios(),
            rubric=self._rubric(),
            repeats=int(self.number("repeats", 1, 1, MOST_REPEATS, whole=True)),
            n_tips=int(self.number("n_tips", N_TIPS, 1, MOST_TIPS, whole=True)),
            diversity=self.switch("diversity"),
            sampling=self._sampling(),
            max_model_b=float(self.number("max_model_b", MAX_MODEL_B, 0, MOST_MODEL_B)),
            max_judge_b=self._max_judge_b(),
            budget_usd=self._budget(),
            priority=self._priority(),
        )
        self._check_keep_alive()
        self._check_whole(definition)
        if self.problems:
            raise DefinitionError(self.problems)
        return definition

    def _name(self, field: str) -> str:
        name = self.name(field)
        if name == _FORM:
            self.say(field, f"{field} cannot be {_FORM}: /experiments/{_FORM} is the form. Choose another name.")
        return name

    def _check_aliases(self) -> None:
        for alias, name in ALIASES.items():
            if alias in self.value and name in self.value:
                self.say(alias, f"Give {name} or {alias}, not both.")

    def _split_lists(self) -> None:
        for name in _LISTS:
            if isinstance(value := self.value.get(name), str):
                self.value[name] = [one.strip() for one in value.split(",") if one.strip()]

    def _choose_provider(self) -> None:
        value = self.value.get("provider", self._default_provider)
        if value == self._default_provider:
            return
        if not isinstance(value, str) or not self._is_provider(value):
            self.say("provider", self._no_provider("provider", value).removeprefix("provider: "))
        else:
            self._default_provider = value

    def _is_provider(self, name: str) -> bool:
        return name in self._providers if self._providers is not None else NAME.fullmatch(name) is not None

    def _no_provider(self, path: str, name: Any) -> str:
        near = suggestion(name, self._providers or ()) if isinstance(name, str) else ""
        return f"{path}: provider {refusals.shown(name)} not found. {near}".rstrip()

    # -- simple fields ---------------------------------------------------------------------------------------------

    def _sampling(self) -> dict[str, Any]:
        """By the first name that REST has for a parameter."""
        found: dict[str, Any] = {}
        for name, parameter in BY_REST_NAME.items():
            value = self.value.get(name)
            if value is None:
                continue
            if problem := parameter.problem(value, name):
                self.say(name, problem)
            elif parameter.rest in found:
                self.say(name, f"Give {parameter.rest} or {name}, not both: they are the same.")
            else:
                found[parameter.rest] = value if parameter.whole else float(value)
        return found

    def _max_judge_b(self) -> float | None:
        if self.value.get("max_judge_b") is None:
            return None
        return float(self.number("max_judge_b", MAX_MODEL_B, 0, MOST_MODEL_B))

    def _budget(self) -> float | None:
        value = self.value.get("budget_usd")
        if value is None:
            return None
        if problem := ALL["budget_usd"].problem(value, "budget_usd"):
            self.say("budget_usd", problem)
            return None
        return float(value)

    def _priority(self) -> str:
        value = self.value.get("priority", "")
        if value != "" and (not isinstance(value, str) or value not in PRIORITIES):
            self.say("priority", refusals.not_valid(value, "priority", PRIORITIES))
            return ""
        return str(value)

    def _check_keep_alive(self) -> None:
        value = self.value.get("keep_alive", KEEP_ALIVE)
        if isinstance(value, bool) or value != KEEP_ALIVE:
            self.say(
                "keep_alive",
                f"keep_alive must be {KEEP_ALIVE}: a model leaves the memory after its answer, before the next one is "
                "loaded.",
            )

    def _rubric(self) -> Rubric:
        value = self.value.get("rubric", RUBRIC)
        if isinstance(value, str):
            if value != RUBRIC:
                near = suggestion(value, [RUBRIC])
                self.say("rubric", f"Rubric {refusals.shown(value)} not found. {near}Use {RUBRIC}, or write a rubric.")
            return shipped_rubric()
        if not isinstance(value, dict):
            self.say("rubric", f"rubric must be {RUBRIC} or an object with version and criteria.")
            return shipped_rubric()
        try:
            rubric = rubrics.parse(json.dumps(value, ensure_ascii=False))
        except rubrics.RubricError as error:
            for path, clause in error.mistakes:
                self.say(f"rubric.{path}" if path else "rubric", f"The rubric {clause}.")
            return shipped_rubric()
        if rubric.version == RUBRIC and rubric != shipped_rubric():
            self.say("rubric", f"{RUBRIC} is the rubric that ships with Touchstone. Give yours another version.")
        return rubric

    # -- models ----------------------------------------------------------------------------------------------------

    def _models(self) -> tuple[Model, ...]:
        found: dict[Model, str] = {}
        for path, value in self.entries("models", MOST_MODELS, "the models to ask, such as ollama/qwen2.5:0.5b"):
            model = self._model(path, value)
            if model is None:
                continue
            if model in found:
                self.say(path, f"{path} is the same model as {found[model]}. Leave one out.")
            found.setdefault(model, path)
        self._model_paths = found
        return tuple(found)

    def _model(self, path: str, value: Any) -> Model | None:
        provider: Any
        name: Any
        if isinstance(value, str):
            provider, name = self._split(value)
        elif isinstance(value, dict):
            self.only(path, value, ("provider", "model"))
            provider, name = value.get("provider") or self._default_provider, value.get("model")
        else:
            provider, name = None, None
        if not isinstance(name, str) or not isinstance(provider, str) or not _is_model(name):
            self.say(path, f'{path} must be "provider/model", or an object with provider and model.')
            return None
        if len(name) > MOST_MODEL:
            self.say(path, refusals.too_large(path, len(name), MOST_MODEL, "characters"))
            return None
        if not provider:
            known = f" Providers: {', '.join(sorted(self._providers))}." if self._providers else ""
            self.say(path, f"{path}, {refusals.shown(name)}, has no provider. Write provider/model.{known}")
            return None
        if not self._is_provider(provider):
            self.say(path, self._no_provider(path, provider))
            return None
        return Model(provider, name)

    def _split(self, text: str) -> tuple[str, str]:
        """Provider and model. Names of models may have slashes and @, too: where endpoints are known, what follows the
        last @ is a provider only if it is one of them, and so is what precedes the first slash, unless there is no
        default one."""
        head, slash, rest = text.partition("/")
        model, _, place = text.rpartition("@")
        if model and place in (self._providers or ()) and not (slash and head in (self._providers or ())):
            return place, model
        known = self._providers is None or head in self._providers or not self._default_provider
        return (head, rest) if slash and known else (self._default_provider, text)

    # -- prompts ---------------------------------------------------------------------------------------------------

    def _prompts(self) -> tuple[Prompt, ...]:
        found: dict[str, Prompt] = {}
        means = f"ids of shipped prompts, such as {prompts.SHIPPED[0]}, or objects with id and template"
        for path, value in self.entries("prompts", MOST_PROMPTS, means):
            prompt = self._prompt(path, value)
            if prompt is None:
                continue
            if prompt.prompt_id in found:
                self.say(path, f"{path}: another prompt has the id {prompt.prompt_id}. Give each its own.")
            found.setdefault(prompt.prompt_id, prompt)
        if (size := sum(len(one.text.encode()) for one in found.values())) > MOST_TEMPLATES:
            self.say("prompts", f"{refusals.too_large('prompts', size, MOST_TEMPLATES, 'bytes')} Shorten them.")
        return tuple(found.values())

    def _prompt(self, path: str, value: Any) -> Prompt | None:
        own = value if isinstance(value, dict) else {"id": value}
        self.only(path, own, ("id", "template"))
        prompt_id, text = own.get("id"), own.get("template")
        if not isinstance(prompt_id, str) or not NAME.fullmatch(prompt_id):
            self.say(path, f"{path} must have an id of {NAME_RULE}; it is {refusals.shown(prompt_id)}.")
            return None
        shipped = prompts.shipped(prompt_id) if prompt_id in prompts.SHIPPED else None
        if text is None and shipped is None:
            near = suggestion(prompt_id, prompts.SHIPPED)
            self.say(path, f"{path}: {prompt_id} does not ship with Touchstone. {near}Give it a template.")
        elif text is None or (shipped is not None and text == shipped.text):
            return shipped
        elif shipped is not None:
            self.say(path, f"{path}: {prompt_id} ships with Touchstone and has another text. Choose another id.")
        elif not isinstance(text, str):
            self.say(path, f"{path}.template must be a string.")
        else:
            try:
                return Prompt.parse(prompt_id, text)
            except RefusedError as error:
                self.say(f"{path}.template", f"{path}, {prompt_id}: {error.reason}")
        return None

    # -- scenarios -------------------------------------------------------------------------------------------------

    def _scenarios(self) -> tuple[Scenario, ...]:
        if "scenarios" not in self.value:
            return self._first(self.value.get("n_scenarios"), "n_scenarios")
        value = self.value["scenarios"]
        if isinstance(value, dict):
            return self._of_set(value)
        means = f'{{"set": "{TIPS}", "count": 20}}, or a list of objects'
        found: dict[str, Scenario] = {}
        for place, (path, row) in enumerate(self.entries("scenarios", MOST_SCENARIOS, means)):
            scenario = self._scenario(path, row, place)
            if scenario is None:
                continue
            if scenario.scenario_id in found:
                why = f"another scenario has the id {scenario.scenario_id}. Give each its own."
                self.say(path, f"{path}: {why}")
            found.setdefault(scenario.scenario_id, scenario)
        return tuple(found.values())

    def _of_set(self, value: Mapping[str, Any]) -> tuple[Scenario, ...]:
        self.only("scenarios", value, ("set", "count"))
        if value.get("set") not in SETS:
            self.say("scenarios.set", refusals.not_valid(value.get("set"), "scenarios.set", SETS))
            return ()
        return self._first(value.get("count"), "scenarios.count")

    def _first(self, count: Any, path: str) -> tuple[Scenario, ...]:
        """The first scenarios of the set, or all without a count."""
        every = scenarios.tips()
        if count is None:
            return every
        if problem := number_problem(count, path, 1, len(every), whole=True):
            self.say(path, problem)
            return ()
        return every[:count]

    def _scenario(self, path: str, row: Any, place: int) -> Scenario | None:
        if not isinstance(row, dict) or not row:
            self.say(path, f"{path} must be an object with the values that the prompts insert.")
            return None
        given = scenarios.default_id(place) if row.get("id") is None else row["id"]
        scenario_id = str(given) if isinstance(given, int) and not isinstance(given, bool) else given
        if not isinstance(scenario_id, str) or not NAME.fullmatch(scenario_id):
            self.say(f"{path}.id", f"{path}.id must be {NAME_RULE}; it is {refusals.shown(given)}.")
            return None
        for name in row:
            if name in (*grid.OF_ROWS, *grid.OF_TEMPLATES):
                self.say(f"{path}.{name}", f"{path}.{name} is set by the experiment. Use another name.")
            elif len(name) > _MOST_FIELD_NAME:
                self.say(path, f"A name in {path} has more than {_MOST_FIELD_NAME} characters. Shorten it.")
        if why := references.fault(row.get(REFERENCE)):
            self.say(f"{path}.{REFERENCE}", f"{path}: {why}")
        if (size := len(dump(row).encode())) > MOST_SCENARIO:
            self.say(path, f"{refusals.too_large(path, size, MOST_SCENARIO, 'bytes')} Shorten it.")
        return Scenario(scenario_id, {name: value for name, value in row.items() if name != "id"})

    # -- several fields --------------------------------------------------------------------------------------------

    def _check_whole(self, definition: Definition) -> None:
        """What single fields do not show, as far as those that it depends on are right."""
        grid_is_right = self._are_right("prompts", "scenarios", "repeats")
        if grid_is_right and definition.rows > MOST_ROWS:
            self.say(
                "scenarios",
                f"The experiment has {definition.rows:,} rows, which is prompts × scenarios × repeats; at most "
                f"{MOST_ROWS:,} are allowed.",
            )
            return
        limits = ("num_predict", *PARAMETERS["max_tokens"].aliases)
        if definition.budget_usd is not None and "num_predict" not in definition.sampling and self._are_right(*limits):
            self.say("budget_usd", "budget_usd needs num_predict, which limits what an answer may cost.")
        last_seed = definition.sampling.get("seed", 0) + definition.repeats - 1
        if last_seed > INT64_MAX and self._are_right("repeats"):
            self.say("seed", f"seed must be at most {INT64_MAX - definition.repeats + 1:,}: each repeat adds 1.")
        for model, sentence in too_large(definition) if self._are_right("max_model_b") else ():
            self.say(self._model_paths[model], sentence)
        if grid_is_right and self._are_right("n_tips", "diversity"):
            self.problems += grid.problems(definition)

    def _are_right(self, *names: str) -> bool:
        """Whether no problem of these fields was found so far."""
        wrong = {re.split(r"[.\[]", path, maxsplit=1)[0] for path, _ in self.problems}
        return not wrong & {*names, *(alias for alias, name in ALIASES.items() if name in names)}


def _is_model(name: str) -> bool:
    return bool(name) and name.isprintable() and name == name.strip()
