"""Pages of experiments: the list, what one found, and the form that starts one."""

from __future__ import annotations

import html
import json
import re
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import httpx
import pytest

from services.gateway.access import tokens
from services.words import rubrics
from tests.gateway import experiment_boards
from tests.gateway.experiment_boards import LONG
from tests.gateway.fake_data import HOSTILE
from tests.gateway.fake_world import World
from tests.gateway.gateway_server import Running, running
from tests.gateway.test_access import with_tokens
from tests.gateway.test_page_weight import MOST_OF_A_PAGE, transferred
from tests.gateway.test_pages import page
from tests.nats_server import NatsServer
from touchstone.v1 import job_pb2, results_service_pb2, scheduler_service_pb2

NAME = "tip-bench-2026-04-27"
ADDRESS = f"/experiments/{NAME}"
FORM = "/experiments/new"
FIELDS: dict[str, str | list[str]] = {
    "request_id": "one",
    "by": "fields",
    "name": NAME,
    "model": ["ollama|phi4-mini", "ollama|llama3.2:3b"],
    "prompt": ["v1", "v2-mentor"],
    "of": "set",
    "count": "5",
    "repeats": "2",
    "max_model_b": "4",
}


def words(text: str, part: str = "<main", end: str = "</main>") -> str:
    """What a part of the page says, without its tags."""
    inner = text[text.index(part) :]
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", inner[: inner.index(end)])).split())


def started(gateway: Running) -> list[scheduler_service_pb2.RunExperimentRequest]:
    return [one for one in gateway.world.asked if isinstance(one, scheduler_service_pb2.RunExperimentRequest)]


async def posted(
    gateway: Running,
    fields: Mapping[str, str | list[str]],
    files: Sequence[tuple[str, str, bytes]] = (("definition_file", "", b""),),
    headers: Mapping[str, str] = MappingProxyType({}),
) -> httpx.Response:
    """The form as a browser sends it. `files` are the field, the name and the bytes of each file; one that is not
    chosen has neither name nor bytes."""
    texts = [
        (name, (None, one)) for name, value in fields.items() for one in ([value] if isinstance(value, str) else value)
    ]
    chosen = [(field, (name, data)) for field, name, data in files]
    told = {"Origin": gateway.url, "Accept": "text/html", **headers}
    return await gateway.client.post(FORM, files=[*texts, *chosen], headers=told)


async def sent(gateway: Running, **fields: Any) -> httpx.Response:
    return await posted(gateway, FIELDS | fields)


def checked_in(text: str) -> str:
    found = re.search(r'name="checked" value="(\w*)"', text)
    assert found
    return found[1]


async def test_without_experiments_the_page_says_what_one_is(gateway: Running) -> None:
    text = await page(gateway, "/experiments")
    assert "No experiments yet" in text
    assert "An experiment asks several models with several versions of a prompt" in text
    assert f'href="{FORM}"' in text
    assert "touchstone bench collect" in text


async def test_the_list_says_how_far_each_experiment_is(gateway: Running) -> None:
    experiment_boards.add(gateway.world, NAME)
    experiment_boards.add(gateway.world, "tips-live", ("gemma3:4b", "phi4-mini"), live=True)
    text = await page(gateway, "/experiments")
    said = words(text, "<tbody", "</tbody>")
    assert said.index("tips-live") < said.index(NAME), "newest first"
    assert re.search(rf"{NAME} completed 100 % 3 3 20 180 m.keller today", said)
    assert re.search(r"tips-live running 16 % 2 3 20 120", said)
    assert 'data-watch="jobs"' in text
    assert 'aria-current="page"' in text.split('href="/experiments"')[1].split(">")[0]
    part = (await gateway.client.get("/experiments", headers={"HX-Request": "true"})).text
    assert part.lstrip().startswith('<div id="experiments"')


async def test_the_list_has_further_pages(gateway: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("services.gateway.pages.experiments.listing.PAGE_SIZE", 2)
    for number in range(3):
        experiment_boards.add(gateway.world, f"tips-{number}")
    text = await page(gateway, "/experiments")
    assert "tips-0" not in text
    older = html.unescape(re.findall(r'href="(/experiments\?after=[^"]+)"', text)[0])
    assert "tips-0" in await page(gateway, older)


async def test_the_leaderboard_has_the_figures_of_rest(gateway: Running) -> None:
    experiment_boards.add(gateway.world, NAME)
    text = await page(gateway, ADDRESS)
    rows = re.findall(r"<tr>.*?</tr>", text[text.index('class="board ranked"') :], re.S)[1:10]
    answer = (await gateway.client.get(f"/api/bench/leaderboard/{NAME}")).json()
    assert len(rows) == len(answer["leaderboard"]) == 9
    for told, row in zip(rows, answer["leaderboard"], strict=True):
        said = words(f"{told}<end>", "<tr", "<end>")
        low, high = row["composite"]["ci95"]
        ranks = "{}–{}".format(*row["rank_range"])
        assert said.startswith(f"{row['rank']} {ranks} {row['model']} ollama {row['prompt']}")
        assert f"{100 * row['composite']['value']:.1f} {100 * low:.1f}–{100 * high:.1f}" in said
        for one in row["criteria"].values():
            assert f" {1 + 4 * one['value']:.1f} " in said
        assert f"{row['scored']}/{row['answered']}" in said
        assert f"{row['diversity']['value']:.2f}" in said
        if row["to_first"]:
            difference = 100 * row["to_first"]["difference"]["value"]
            assert f"{difference:.1f}".replace("-", "−") in said
            assert f"p {row['to_first']['p_value']:.3f}" in said
    assert text.count("<b>p 0.004</b>") == sum(
        1 for row in answer["leaderboard"] if row["to_first"] and row["to_first"]["p_value"] < 0.05
    )
    assert "<svg" in rows[0]


async def test_what_became_of_the_answers_is_said(gateway: Running) -> None:
    experiment_boards.odd(gateway.world)
    text = await page(gateway, f"/experiments/{LONG}")
    assert text.count('title="17 of 20 answered, 3 errors, 15 scored, 2 judgements failed"') == 4


async def test_jobs_that_do_not_count_are_named(gateway: Running) -> None:
    board = experiment_boards.add(gateway.world, NAME)
    assert "do not count" not in await page(gateway, ADDRESS)
    marked = board.experiment.jobs[0].job_id
    board.uncounted_job_ids.append(marked)
    text = await page(gateway, ADDRESS)
    assert f'<a class="link" href="/jobs/{marked}">job <code>{marked[-8:]}</code></a> do not count' in text


async def test_a_sentence_says_how_far_the_ranking_holds(gateway: Running) -> None:
    found = experiment_boards.add(gateway.world, NAME)
    said = words(await page(gateway, ADDRESS))
    first, best = found.rows[0], max(found.models, key=lambda one: one.mean.value)
    assert f"First is {first.model} with {first.prompt} , {100 * first.composite.value:.1f}" in said
    assert "The data leave the first place open to 3 of 9 combinations." in said
    assert f"Over all prompts, {best.model} has the highest mean" in said
    assert "This ranking holds for 2 of 3 prompts: for the others, another model is first." in said
    assert "9 of 180 answers have no score of the judge ollama/mistral:7b; 9 judgements failed." in said
    assert "scored by the judge ollama/mistral:7b, by tip-v1" in said


async def test_the_heat_map_is_a_table_with_each_model_s_best_prompt(gateway: Running) -> None:
    found = experiment_boards.add(gateway.world, NAME)
    text = await page(gateway, ADDRESS)
    part = text[text.index('class="board heatmap"') :]
    part = part[: part.index("</table>")]
    assert part.count('<td class="heat h') == 9
    assert re.findall(r'class="heat (h\d)"', part).count("h5") >= 1
    for model, line in zip(found.models, re.findall(r"<tr>.*?</tr>", part, re.S)[1:], strict=True):
        said = words(f"{line}<end>", "<tr", "<end>")
        spread = 100 * (model.best - model.worst)
        assert (
            f"{model.best_prompt} {100 * model.best:.1f} {model.worst_prompt} {100 * model.worst:.1f} {spread:.1f}"
            in said
        )
        assert f"{100 * model.mean.value:.1f}" in said
    assert "shade, in all cells" in text


async def test_whose_scores_rank_is_in_the_address(gateway: Running) -> None:
    found = experiment_boards.add(gateway.world, NAME)
    found.judges.append("gemini/gemini-2.5-flash")
    text = await page(gateway, f"{ADDRESS}?source=combined&judge=gemini/gemini-2.5-flash&top=100")
    asked = [one for one in gateway.world.asked if isinstance(one, results_service_pb2.GetExperimentRequest)][-1]
    assert asked.source == results_service_pb2.GetExperimentRequest.SOURCE_COMBINED
    assert asked.judge == "gemini/gemini-2.5-flash"
    assert '<option value="combined" selected>both together' in text
    assert 'name="judge"' in text
    assert f"/api/bench/leaderboard/{NAME}?source=combined&judge=ollama%2Fmistral%3A7b" in text
    for address in re.findall(r'href="(/api/bench/[^"]+)"', text):
        assert (await gateway.client.get(html.unescape(address))).status_code == 200, address
    odd = await page(gateway, f"{ADDRESS}?source=nobody&top=7")
    assert '<option value="" selected>judge, else people' in odd


async def test_jobs_are_followed_while_one_runs(gateway: Running) -> None:
    found = experiment_boards.add(gateway.world, NAME, live=True)
    text = await page(gateway, ADDRESS)
    assert 'data-watch="jobs"' in text[text.index('id="experiment"') :].split(">")[0]
    assert text.index('id="experiment-jobs"') < text.index("board ranked"), "what runs is on top"
    said = words(text, 'id="experiment-jobs"', "</section>")
    assert "3 jobs, 80 of 180 answers running" in said
    assert "phi4-mini ollama pending" in said
    first = found.experiment.jobs[0]
    digest = rubrics.digest(found.experiment.rubric)
    assert f'href="/jobs/{first.job_id}/rate?rubric={digest}"' in text
    assert text.count("/rate?rubric=") == 1, "only a completed job's answers can be rated"
    part = (await gateway.client.get(ADDRESS, headers={"HX-Request": "true"})).text
    assert part.lstrip().startswith('<div id="experiment"')


async def test_a_judge_that_has_not_come_keeps_the_page_live(gateway: Running) -> None:
    found = experiment_boards.add(gateway.world, NAME, scored=False)
    for job in found.experiment.jobs:
        job.spec.judges.add(endpoint="ollama", model="mistral:7b")
    found.live_judges.append("ollama/mistral:7b")
    text = await page(gateway, ADDRESS)
    assert "180 of 180 answers have no score. ollama/mistral:7b waits or runs." in words(text)
    assert 'data-watch="jobs"' in text[text.index('id="experiment"') :].split(">")[0]
    assert "board ranked" in text
    assert "95 % interval" not in text, "nothing is estimated yet"
    del found.live_judges[:]
    assert "No job of ollama/mistral:7b waits or runs: it has ended, or could not start." in words(
        await page(gateway, ADDRESS)
    )


async def test_a_judge_that_starts_after_the_last_answer_is_announced(gateway: Running) -> None:
    found = experiment_boards.add(gateway.world, NAME, live=True, scored=False)
    found.live_judges.append("ollama/mistral:7b")
    assert "ollama/mistral:7b judges once all answers are there." in words(await page(gateway, ADDRESS))


async def test_combinations_without_scores_may_be_first(gateway: Running) -> None:
    found = experiment_boards.add(gateway.world, NAME)
    for row in found.rows[1:]:
        row.rank_low = row.rank
    assert "No other combination may be first." in words(await page(gateway, ADDRESS))
    for row in found.rows[-2:]:
        row.rank = row.rank_low = row.rank_high = row.scored = 0
        row.ClearField("composite")
    said = "The data leave the first place open to 3 of 9 combinations: 2 have no scores yet."
    assert said in words(await page(gateway, ADDRESS))
    found.uncounted_job_ids.extend({row.job_id for row in found.rows[-2:]})
    assert "No other combination may be first." in words(await page(gateway, ADDRESS))


async def test_the_prompts_are_there_with_their_templates(gateway: Running) -> None:
    long = "Say {{about}}. " * 400
    experiment_boards.add(gateway.world, NAME, prompts=[("brief", "{{about}} <b>{{time}}</b>"), ("long", long)])
    text = await page(gateway, ADDRESS)
    assert "{{about}} <b>{{time}}</b>" in text
    assert long not in text
    rest = html.unescape(re.findall(r'href="(/experiments/[^"]+#prompt-long)"', text)[0])
    whole = await page(gateway, rest.partition("#")[0])
    assert long in whole
    assert '<details id="prompt-long" open>' in whole
    assert "the command needs the file of the definition" in text


async def test_the_definition_is_downloaded_and_taken_by_the_form(gateway: Running) -> None:
    checked = await sent(gateway, act="check")
    await sent(gateway, checked=checked_in(checked.text), act="start")
    text = await page(gateway, ADDRESS)
    for format in ("yaml", "json"):
        (address,) = re.findall(rf'href="(/api/bench/definition/[^"]+={format})" download', text)
        kept = await gateway.client.get(address)
        files = [("definition_file", f"tips.{format}", kept.content)]
        again = await posted(gateway, {"request_id": "two", "by": "text", "act": "check"}, files)
        assert again.status_code == 200, words(again.text)
        assert "phi4-mini pending, llama3.2:3b pending" in words(again.text, "<aside", "</aside>")


async def test_the_command_starts_the_same(gateway: Running) -> None:
    experiment_boards.add(gateway.world, NAME)
    assert (
        f"touchstone bench collect --experiment {NAME} --models ollama/gemma3:4b,ollama/phi4-mini,ollama/qwen2.5:7b "
        "--prompts v1,v2-mentor,v3-few-shot --n-scenarios 20 --diversity --max-model-b 0 --temperature 0.7"
    ) in words(await page(gateway, ADDRESS))


async def test_the_command_keeps_the_limit_of_sizes_where_it_can(gateway: Running) -> None:
    found = experiment_boards.add(gateway.world, NAME, ("gemma3:4b", "phi4-mini"))
    assert "--max-" not in words(await page(gateway, ADDRESS)).partition("touchstone bench collect ")[2]
    for job in found.experiment.jobs:
        job.spec.judges.add(endpoint="ollama", model="mistral:7b")
    command = words(await page(gateway, ADDRESS)).partition("touchstone bench collect ")[2]
    assert "--max-judge-b 0" in command
    assert "--max-model-b" not in command


async def test_the_command_has_the_limits_of_sizes_that_are_stored(gateway: Running) -> None:
    found = experiment_boards.add(gateway.world, NAME, ("gemma3:4b", "phi4-mini"))
    for job in found.experiment.jobs:
        job.spec.max_model_b = 4.5
        job.spec.judges.add(endpoint="ollama", model="mistral:7b", max_model_b=8)
    command = words(await page(gateway, ADDRESS)).partition("touchstone bench collect ")[2]
    assert "--max-model-b 4.5 --max-judge-b 8 " in command


async def test_the_command_names_all_judges_with_their_options_and_budgets(gateway: Running) -> None:
    found = experiment_boards.add(gateway.world, NAME)
    for job in found.experiment.jobs:
        job.spec.budget_usd, job.spec.priority = 0.5, job_pb2.PRIORITY_HIGH
        job.spec.judges.add(endpoint="ollama", model="phi4")
        second = job.spec.judges.add(endpoint="openai", model="gpt-5", repeats=3, budget_usd=2.25)
        second.sampling.max_tokens = 400
    command = words(await page(gateway, ADDRESS)).partition("touchstone bench collect ")[2]
    assert (
        "--temperature 0.7 --budget-usd 1.5 --priority high --judge-model phi4 --judge-endpoint ollama "
        "--judge-model gpt-5 --judge-endpoint openai --judge-repeats 3 --judge-max-tokens 400 --judge-budget-usd 2.25"
    ) in command
    sampling = found.experiment.jobs[0].spec.judges[0].sampling
    sampling.temperature, sampling.seed, sampling.extra_json = 0.5, -7, '{"think":false}'
    command = words(await page(gateway, ADDRESS)).partition("touchstone bench collect ")[2]
    given = "--judge-temperature 0.5 --judge-seed -7 --judge-custom-config '{\"think\":false}'"
    assert f"--judge-model phi4 --judge-endpoint ollama {given} --judge-model gpt-5" in command


async def test_a_judge_is_offered_with_the_experiment_s_rubric(gateway: Running) -> None:
    found = experiment_boards.odd(gateway.world)
    job = found.experiment.jobs[1]
    text = await page(gateway, f"/jobs/{job.job_id}/judge")
    assert "odd-v1" in text
    assert 'value="rubric" checked' in text
    assert f'href="/jobs/{job.job_id}/rate"' in await page(gateway, f"/experiments/{LONG}"), "its rubric is not known"


async def test_a_job_leads_to_its_experiment(gateway: Running) -> None:
    found = experiment_boards.add(gateway.world, NAME, ["\u202egnp.x"])
    text = await page(gateway, f"/jobs/{found.experiment.jobs[0].job_id}")
    assert f'Part of experiment\xa0<a href="{ADDRESS}">{NAME}</a>' in text
    assert "\u202e" not in (await page(gateway, ADDRESS)).replace("\n", "").partition("--models")[0], "written out"


async def test_an_experiment_called_new_has_a_page(gateway: Running) -> None:
    experiment_boards.add(gateway.world, "new")
    assert 'href="/experiments?name=new"' in await page(gateway, "/experiments")
    text = await page(gateway, "/experiments?name=new&source=people")
    assert "3 models × 3 prompts × 20 scenarios = 180 cells" in words(text)


async def test_an_unknown_experiment_is_404(gateway: Running) -> None:
    answer = await gateway.client.get("/experiments/none", headers={"Accept": "text/html"})
    assert answer.status_code == 404
    assert "Experiment &#39;none&#39; not found" in answer.text or "not found" in answer.text


async def test_hostile_names_and_templates_are_text(gateway: Running) -> None:
    experiment_boards.odd(gateway.world)
    for address in ("/experiments", f"/experiments/{LONG}", f"/experiments/{LONG}?prompt={'p' * 64}"):
        text = (await gateway.client.get(address, headers={"Accept": "text/html"})).text
        assert "<script>" not in text
        assert "<img" not in text
        assert HOSTILE in html.unescape(text)


@pytest.mark.stack
async def test_the_largest_board_is_light_and_quick() -> None:
    world = World()
    experiment_boards.large(world)
    async with running(world) as gateway:
        for query in ("", "?top=200"):
            size, text = await transferred(gateway, f"/experiments/large{query}")
            assert size <= MOST_OF_A_PAGE, query
            assert text.count('<td class="heat h') == 200
        took = []
        for _ in range(5):
            begun = time.perf_counter()
            await transferred(gateway, "/experiments/large")
            took.append(time.perf_counter() - begun)
    assert min(took) < 0.2


async def test_the_form_counts_before_it_starts(gateway: Running) -> None:
    text = await page(gateway, FORM)
    assert "The check counts cells and calls, and starts nothing." in text
    assert "phi4-mini" in text
    assert "3.8 B" in text
    answer = await sent(gateway, act="check", judge="ollama|mistral:7b", seed="7")
    assert answer.status_code == 200, words(answer.text)
    assert "40 calls 20 cells of model, prompt and scenario" in words(answer.text, "<aside", "</aside>")
    call = started(gateway)[-1]
    assert call.check_only
    assert json.loads(call.definition) == {
        "name": NAME,
        "models": [{"provider": "ollama", "model": "phi4-mini"}, {"provider": "ollama", "model": "llama3.2:3b"}],
        "prompts": ["v1", "v2-mentor"],
        "scenarios": {"set": "tips", "count": 5},
        "diversity": False,
        "repeats": 2,
        "seed": 7,
        "max_model_b": 4,
    }
    assert call.judges[0] == job_pb2.Judge(endpoint="ollama", model="mistral:7b")
    assert not gateway.world.datasets
    fields = {"judge": "ollama|mistral:7b", "seed": "7", "checked": checked_in(answer.text), "act": "start"}
    changed = await sent(gateway, **fields | {"count": "6"})
    assert changed.status_code == 200, "what has changed since is counted first"
    assert "48 calls" in words(changed.text, "<aside", "</aside>")
    assert not gateway.world.datasets
    answer = await sent(gateway, **fields)
    assert answer.status_code == 303
    assert answer.headers["location"] == ADDRESS
    assert [job.spec.model for job in gateway.world.jobs.values()] == ["phi4-mini", "llama3.2:3b"]
    assert "phi4-mini pending" in words((await sent(gateway, act="check", seed="7")).text, "<aside", "</aside>")
    other = await sent(gateway, act="check", seed="8")
    assert f"Experiment {NAME} exists and differs in" in words(other.text)


async def test_the_form_takes_three_judges_and_a_rubric(gateway: Running) -> None:
    judges = {
        "judge": ["ollama|mistral:7b", "", "ollama|phi4-mini", "ollama|llama3.2:3b"],
        "judge_repeats": ["3", "9", "", "2"],
        "judge_num_predict": ["400", "", "300", ""],
        "judge_seed": ["", "", "-7"],
        "judge_budget": ["1.5", "", "", "0"],
    }
    rubric = "version: brief-v1\ncriteria: [{name: short}]"
    answer = await sent(gateway, act="check", rubric=rubric, **judges)
    assert answer.status_code == 200, words(answer.text)
    call = started(gateway)[-1]
    assert [(one.model, one.repeats, one.sampling.max_tokens, one.budget_usd) for one in call.judges] == [
        ("mistral:7b", 3, 400, 1.5),
        ("phi4-mini", 0, 300, 0),
        ("llama3.2:3b", 2, 0, 0),
    ]
    assert [one.sampling.seed for one in call.judges if one.sampling.HasField("seed")] == [-7]
    assert json.loads(call.definition)["rubric"] == {"version": "brief-v1", "criteria": [{"name": "short"}]}
    assert words(answer.text, "<aside", "</aside>").count("after the last answer") == 3
    judges |= {"judge_repeats": ["11", "", "x"], "judge_budget": ["", "", "", "-1"]}
    wrong = await sent(gateway, act="check", rubric="version: [", **judges)
    assert wrong.status_code == 422
    for field, said in (("judge-0", "repeats must be"), ("judge-1", "repeats must be"), ("judge-2", "US dollars")):
        assert re.search(rf'id="{field}-problem"[^>]*>[^<]*{said}', wrong.text), field
    judges |= {"judge_repeats": [], "judge_num_predict": ["", "", "x"], "judge_budget": ["1.5"]}
    wrong = await sent(gateway, act="check", **judges)
    for field, said in (("judge-0", "A budget needs Max tokens"), ("judge-1", "Max tokens must")):
        assert re.search(rf'id="{field}-problem"[^>]*>[^<]*{said}', wrong.text), field
    broken = await sent(gateway, act="check", rubric="version: [")
    assert re.search(r'id="rubric-problem"[^>]*>[^<]+', broken.text)
    broken = await sent(gateway, act="check", rubric="version: brief\ncriteria:\n  - name: short\n    weight: -1")
    assert re.search(r'id="rubric-problem"[^>]*>Line 4: The rubric gives short a weight of -1', broken.text)


async def test_a_check_says_which_judges_were_deleted(gateway: Running) -> None:
    gateway.world.deleted_judges.append(scheduler_service_pb2.DeletedJudge(judge=1, job_ids=["a", "b"]))
    answer = await sent(gateway, act="check", judge=["ollama|mistral:7b", "ollama|phi4-mini"])
    said = words(answer.text, "<aside", "</aside>")
    assert "ollama/mistral:7b, after the last answer" in said
    assert "ollama/phi4-mini, not of 2 models: its job was deleted." in said


async def test_what_is_wrong_stands_at_its_field_and_nothing_is_lost(gateway: Running) -> None:
    answer = await sent(
        gateway,
        act="check",
        name="no spaces",
        model=["ollama|qwen2.5:7b", "gone|model"],
        prompt_id=["brief", ""],
        template=["{{nothing}} {{about}}", ""],
        repeats="99",
        temperature="hot",
    )
    assert answer.status_code == 422
    text = answer.text
    for field, said in (("name", "not only dots"), ("repeats", "repeats must be"), ("temperature", "temperature")):
        assert re.search(rf'id="{field}-problem"[^>]*>[^<]*{said}', text), field
    assert 'value="no spaces"' in text
    assert "{{nothing}} {{about}}" in text
    assert re.search(r'value="gone\|model" id="unlisted-1" checked', text)
    assert 'value="hot"' in text
    assert not gateway.world.datasets
    own = await sent(gateway, act="check", prompt_id="brief", template="{{nothing}}", count="many")
    assert re.search(r'id="scenarios-problem"[^>]*>[^<]*scenarios.count must be a whole number', own.text)
    own = await sent(gateway, act="check", prompt_id="brief", template="{{nothing}}")
    assert re.search(r'id="own-0-problem"[^>]*>[^<]*nothing', own.text)


async def test_there_is_room_for_more_prompts_of_one_s_own(gateway: Running) -> None:
    answer = await sent(gateway, act="prompt", prompt_id="brief", template="{{about}}")
    assert answer.status_code == 200
    assert answer.text.count('name="prompt_id"') == 2
    assert not started(gateway)


async def test_own_scenarios_and_templates_are_sent(gateway: Running) -> None:
    fields = {
        "of": "own",
        "lines": '{"id": "rome", "city": "Rome"}\r\n',
        "prompt_id": "brief",
        "template": "{{city}}\r\nTips",
    }
    answer = await sent(gateway, act="check", prompt=[], **fields)
    assert answer.status_code == 200, words(answer.text)
    asked = json.loads(started(gateway)[-1].definition)
    assert asked["prompts"] == [{"id": "brief", "template": "{{city}}\nTips"}]
    assert asked["scenarios"] == [{"id": "rome", "city": "Rome"}]
    wrong = await sent(
        gateway, act="check", prompt=[], **fields | {"lines": '\n{"city": "Rome"}\n\n{"id": "a/b", "city": ""}'}
    )
    assert re.search(r'id="scenarios-problem"[^>]*>id in line 4 must be 1 to 64', wrong.text), words(wrong.text)
    wrong = await sent(gateway, act="check", of="own", lines="{")
    assert wrong.status_code == 422
    assert re.search(r'id="scenarios-problem"[^>]*>[^<]*\w', wrong.text)


@pytest.mark.parametrize(
    "text",
    [
        "name: pasted\nmodels: [ollama/phi4-mini]\nprompts: [v1]\nn_scenarios: 3\n",
        '{"name": "pasted", "models": "phi4-mini", "prompts": "v1", "n_scenarios": 3, "provider": "ollama"}',
    ],
)
async def test_a_definition_can_be_pasted(gateway: Running, text: str) -> None:
    answer = await sent(gateway, by="text", definition=text, act="check")
    assert answer.status_code == 200, words(answer.text)
    assert "3 calls 3 cells" in words(answer.text, "<aside", "</aside>")
    made = await sent(gateway, by="text", definition=text, act="start", checked=checked_in(answer.text))
    assert made.headers["location"] == "/experiments/pasted"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "Paste a definition in YAML or JSON, or choose its file."),
        ("name: [", "YAML"),
        ("name: pasted\nsince: 2026-04-27\n", "since"),
        ("name: pasted\nmodels: [ollama/phi4-mini]\nprompts: [v9]\nn_scenarios: 3\n", "v9"),
    ],
)
async def test_a_pasted_definition_that_is_wrong_is_kept_with_the_reason(
    gateway: Running, text: str, said: str
) -> None:
    answer = await sent(gateway, by="text", definition=text, act="check")
    assert answer.status_code == 422
    assert said in html.unescape(answer.text.partition('id="definition-problem"')[2].partition("</p>")[0])
    assert html.escape(text, quote=True).replace("&#x27;", "&#39;") in answer.text


async def test_the_form_says_when_the_scheduler_is_silent(gateway: Running) -> None:
    await gateway.stop_service("scheduler")
    answer = await sent(gateway, act="check")
    assert answer.status_code == 422
    assert "The scheduler does not answer" in answer.text
    assert f'value="{NAME}"' in answer.text


async def test_experiments_are_for_admins(tmp_path: Path) -> None:
    nats = NatsServer().start(tmp_path)
    world = World()
    experiment_boards.add(world, NAME)
    try:
        async with with_tokens(nats, world) as (gateway, nats_bus):
            text = await tokens.create(nats_bus, "a.lind", "user", "nightly")
            answer = await gateway.client.post("/login", data={"token": text}, headers={"Origin": gateway.url})
            headers = {"Accept": "text/html", "Cookie": f"touchstone={answer.cookies['touchstone']}"}
            for address in ("/experiments", ADDRESS, FORM):
                refused = await gateway.client.get(address, headers=headers)
                assert refused.status_code == 403
                assert "Experiments are for admins." in refused.text
            assert 'href="/experiments"' not in (await gateway.client.get("/jobs", headers=headers)).text
    finally:
        nats.stop()
