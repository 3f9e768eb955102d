"""Judges on pages: the section of a judged job, what judges said of an answer, and the form that starts a judge."""

from __future__ import annotations

import html
import json
import re
from copy import deepcopy
from typing import Any

import pytest

from services.gateway.pages.items.opinions import LONG
from services.words import rubrics
from tests.gateway.fake_data import HOSTILE
from tests.gateway.fake_world import World, spec
from tests.gateway.gateway_server import Running
from tests.gateway.test_pages import page
from tests.unit.words.test_rubrics import CORRECT, TIPS
from touchstone.v1 import dataset_pb2, item_result_pb2, job_pb2, metric_pb2, results_service_pb2

BASE = "/api/v1/benchmarking"


def completed(world: World) -> job_pb2.Job:
    return world.finish(world.start(world.add(spec(suite="demo"), "local").job_id).job_id)


def judged(world: World, job: job_pb2.Job, rubric: dict[str, Any] = TIPS) -> results_service_pb2.JudgeRun:
    """A finished judge of the job: 100 judgements, of which nine failed and one call did."""
    judging = job_pb2.Judging(job_id=job.job_id, repeats=2)
    asked = job_pb2.JobSpec(endpoint="ollama", model="mistral:7b", judging=judging)
    asked.dataset.dataset_id = f"ds_{job.job_id.replace('-', '')}"
    judge = job_pb2.Job(job_id=f"{job.job_id[:-4]}beef", owner="local", spec=asked, attempt=1)
    judge.state = job_pb2.Job.STATE_COMPLETED
    run = results_service_pb2.JudgeRun(job=judge, rubric=rubrics.of_value(rubric))
    run.result.items, run.result.items_planned = 100, 100
    run.result.outcomes.CopyFrom(metric_pb2.OutcomeCounts(answered=90, unparsed=8, refused=1, infrastructure_error=1))
    for name in rubrics.names(run.rubric):
        share = 0.6 if name == "composite" else 0.725
        run.result.metrics.add(metric=name, mean=share, ci95_low=share - 0.1, ci95_high=share + 0.1, n=90)
    found = world.judges.setdefault(job.job_id, results_service_pb2.ListJudgesResponse())
    found.judges.append(run)
    return found.judges[-1]


def agreed(run: results_service_pb2.JudgeRun) -> None:
    """People rated 60 of the answers under the rubric, two of them the same 20."""
    for name in rubrics.names(run.rubric):
        found = run.agreement.add(metric=name, answers=58, ratings_to_halve=45)
        figures = {"bias": (0.105, 0.05, 0.16, 58), "people": (0.6, 0.541, 0.658, 60)}
        figures["combined"] = (0.6125, 0.58, 0.644, 100)
        if name != "composite":
            figures |= {"accuracy": (0.62, 0.494, 0.734, 58), "kappa": (0.71, 0.55, 0.82, 58)}
            figures["alpha"] = (0.64, -0.03, 0.83, 20)
        for member, (value, low, high, n) in figures.items():
            getattr(found, member).CopyFrom(results_service_pb2.Interval(value=value, low=low, high=high, n=n))


def asked_of_judges(gateway: Running) -> list[results_service_pb2.ListJudgesRequest]:
    return [one for one in gateway.world.asked if isinstance(one, results_service_pb2.ListJudgesRequest)]


def section(text: str) -> str:
    """The words of the section, without its tags."""
    part = text[text.index('<section id="job-judges"') :]
    return " ".join(re.sub(r"<[^>]*>", " ", part[: part.index("</section>")]).split())


async def test_a_judged_job_shows_what_its_judges_found_on_their_scales(gateway: Running) -> None:
    job = completed(gateway.world)
    run = judged(gateway.world, job)
    text = await page(gateway, f"/jobs/{job.job_id}")
    said = section(text)
    assert f'<a href="/jobs/{run.job.job_id}">mistral:7b</a>' in text
    assert "mistral:7b completed at ollama, by tip-v1" in said
    assert "composite 60.0 of 100 50.0–70.0" in said
    assert "relevance 3.9 of 1–5 3.5–4.3" in said
    assert "90 of 100 judgements · 9 failed , 9.0 % · 1 call failed" in said
    assert "is a failure of the judge and moves no score" in said
    assert "hx-get" not in text[text.index('<section id="job-judges"') :].split(">")[0], "nothing of it can change"
    rubric = said[said.index("Rubric tip-v1") :]
    assert "Judge a list of tips." in rubric
    assert "relevance a whole number from 1 to 5; weight 40 %" in rubric
    assert "Example with 5: a" in rubric


async def test_the_figures_are_those_of_rest(gateway: Running) -> None:
    job = completed(gateway.world)
    choices = deepcopy(CORRECT)
    choices["criteria"][0]["choices"][2]["value"] = 0.1
    judged(gateway.world, job)
    judged(gateway.world, job, choices)
    said = section(await page(gateway, f"/jobs/{job.job_id}"))
    for one in (await gateway.client.get(f"{BASE}/results/{job.job_id}/judges")).json()["judges"]:
        assert f"{one['judged']} of {one['asked']} judgements · {one['failed']} failed" in said
        for name, figure in one["criteria"].items():
            low, high = figure["ci95_on_scale"]
            if name in ("composite", "correct"):
                assert f"{name} {100 * figure['mean_on_scale']:.1f} of 100 {100 * low:.1f}–{100 * high:.1f}" in said
            else:
                assert f"{name} {figure['mean_on_scale']:.1f} of 1–5 {low:.1f}–{high:.1f}" in said


async def test_agreement_with_people_stands_at_each_judge_with_the_figures_of_rest(gateway: Running) -> None:
    job = completed(gateway.world)
    agreed(judged(gateway.world, job))
    said = section(await page(gateway, f"/jobs/{job.job_id}"))
    assert "On the 58 answers that both scored, its composite is 10.5 points above people's (+5.0 to +16.0)." in said
    assert "People's mean over all answers is 61.3 of 100 (58.0–64.4), from 60 rated answers" in said
    assert "About 45 more ratings would halve this interval." in said
    assert "What the figures against people mean" in said
    (run,) = (await gateway.client.get(f"{BASE}/results/{job.job_id}/judges")).json()["judges"]
    for name, one in run["agreement"].items():
        row = said[said.index(f"{name} of ", said.index("Equal scores")) :]
        assert row.startswith(f"{name} of {'100' if name == 'composite' else '1–5'} {one['answers']} ")
        low, high = one["bias"]["ci95"]
        if name == "composite":
            assert f"+{100 * one['bias']['value']:.1f} +{100 * low:.1f} to +{100 * high:.1f}" in row
            continue
        assert f"{100 * one['accuracy']['value']:.1f} % 49.4–73.4" in row
        assert f"{one['kappa']['value']:.2f} 0.55–0.82" in row
        assert f"+{4 * one['bias']['value']:.2f} +{4 * low:.2f} to +{4 * high:.2f}" in row
        for mean in ("people", "combined"):
            low, high = one[mean]["ci95"]
            assert f"{1 + 4 * one[mean]['value']:.2f} {1 + 4 * low:.2f}–{1 + 4 * high:.2f}" in row
        assert f" {one['ratings_to_halve']} {one['alpha']['value']:.2f} −0.03 to 0.83" in row


async def test_people_who_rated_by_a_rubric_of_no_judge_are_shown(gateway: Running) -> None:
    job = completed(gateway.world)
    found = gateway.world.judges.setdefault(job.job_id, results_service_pb2.ListJudgesResponse())
    by = rubrics.of_value(TIPS)
    people = found.people.add(rubric=by, raters=1, answers=9)
    said = section(await page(gateway, f"/jobs/{job.job_id}"))
    assert said.startswith("People's ratings agreement, 95 % intervals People by tip-v1 1 person, 9 answers rated")
    assert "needs two people who rated the same answers. No judge has judged these answers." in said
    people.raters, people.shared = 2, 7
    people.criteria.add(criterion="tone", alpha=results_service_pb2.Interval(value=0.5, low=-0.125, high=0.9, n=7))
    people.criteria.add(criterion="relevance")
    text = await page(gateway, f"/jobs/{job.job_id}")
    said = section(text)
    assert "2 people, 9 answers rated, 7 by two or more tone, alpha 0.50 −0.12 to 0.90 relevance, alpha –" in said
    assert "Krippendorff's alpha is 1 where people fully agree" in said
    assert f'href="/jobs/{job.job_id}/rate?rubric={rubrics.digest(by)}">Rate answers by tip-v1</a>' in text
    assert "Rubric tip-v1" in said
    assert "failure of the judge" not in said
    judged(gateway.world, job, CORRECT)
    said = section(await page(gateway, f"/jobs/{job.job_id}"))
    assert said.startswith("Judges and people means of scores, 95 % intervals mistral:7b")
    assert "People by tip-v1 2 people" in said
    assert "No judge has judged" not in said
    agreed(judged(gateway.world, job))
    said = section(await page(gateway, f"/jobs/{job.job_id}"))
    assert "People by tip-v1" not in said, "the judge's own table has people's alpha"


async def test_what_ratings_cannot_show_yet_is_said(gateway: Running) -> None:
    job = completed(gateway.world)
    run = judged(gateway.world, job, CORRECT)
    said = section(await page(gateway, f"/jobs/{job.job_id}"))
    assert "Nobody has rated answers by this rubric" in said
    assert "What the figures against people mean" not in said
    run.verdicts.answers = 12
    run.verdicts.accuracy.CopyFrom(results_service_pb2.Interval(value=0.75, low=0.468, high=0.911, n=12))
    run.verdicts.kappa.CopyFrom(results_service_pb2.Interval(value=0.5, low=-0.1, high=0.8, n=12))
    said = section(await page(gateway, f"/jobs/{job.job_id}"))
    assert (
        "On 75.0 % (46.8–91.1) of 12 answers with a verdict, it agrees with golden, fix or wrong; kappa 0.50." in said
    )
    assert "Nobody has rated answers by this rubric" in said
    assert "What the figures against people mean" not in said
    found = run.agreement.add(metric="correct", answers=1)
    said = section(await page(gateway, f"/jobs/{job.job_id}"))
    assert "People and this judge both scored 1 answer; its bias needs two." in said
    assert "needs ten answers rated in the order of the queue" in said
    found.answers = 9
    found.bias.CopyFrom(results_service_pb2.Interval(value=-0.02, low=-0.1, high=0.06, n=9))
    said = section(await page(gateway, f"/jobs/{job.job_id}"))
    assert "On the 9 answers that both scored, no difference from people in correct can be shown." in said
    assert "−2.0 −10.0 to +6.0" in said
    found.bias.high = -0.01
    said = section(await page(gateway, f"/jobs/{job.job_id}"))
    assert "its correct is 2.0 points below people's (−10.0 to −1.0)" in said


@pytest.mark.parametrize(
    ("lowest", "highest", "shown"), [(0, 1, "0.72 of 0–1 0.62–0.82"), (-2, 2, "0.9 of -2–2 0.5 to 1.3")]
)
async def test_a_mean_has_the_decimals_that_its_scale_needs(
    gateway: Running, lowest: int, highest: int, shown: str
) -> None:
    job, rubric = completed(gateway.world), deepcopy(TIPS)
    rubric["criteria"] = [{"name": "relevance", "lowest": lowest, "highest": highest}]
    judged(gateway.world, job, rubric)
    assert f"relevance {shown}" in section(await page(gateway, f"/jobs/{job.job_id}"))


async def test_a_mean_that_is_not_estimated_is_shown_as_bounds(gateway: Running) -> None:
    job = completed(gateway.world)
    metrics = judged(gateway.world, job).result.metrics
    for metric in metrics:
        metric.ClearField("ci95_low")
        metric.ClearField("ci95_high")
        metric.bound_low, metric.bound_high = 0.5, 0.75
    said = section(await page(gateway, f"/jobs/{job.job_id}"))
    assert "composite 50.0–75.0 of 100" in said
    assert "relevance 3.0–4.0 of 1–5" in said


async def test_a_judge_that_is_not_finished_or_has_not_started_is_said(gateway: Running) -> None:
    world = gateway.world
    asked = spec(suite="demo")
    for model in ("mistral:7b", "qwen2.5:7b"):
        asked.judges.add(endpoint="ollama", model=model, rubric=rubrics.written(rubrics.of_value(TIPS)))
    job = world.finish(world.start(world.add(asked, "local").job_id).job_id)
    run = judged(world, job)
    run.job.state = job_pb2.Job.STATE_RUNNING
    run.result.Clear()
    run.job.progress.items_total = 50
    text = await page(gateway, f"/jobs/{job.job_id}")
    said = section(text)
    assert "qwen2.5:7b waiting at ollama" in said
    assert "mistral:7b running at ollama" in said
    assert "0 of 50 judgements" in said
    assert f'hx-get="/jobs/{job.job_id}/judges"' in text
    part = await gateway.client.get(f"/jobs/{job.job_id}/judges", headers={"HX-Request": "true"})
    assert part.text.startswith("<section")
    assert "running" in part.text
    whole = await gateway.client.get(f"/jobs/{job.job_id}/judges", follow_redirects=False)
    assert whole.headers["location"] == f"/jobs/{job.job_id}#job-judges"
    run.job.state, run.job.reason = job_pb2.Job.STATE_FAILED, "The endpoint does not answer"
    said = section(await page(gateway, f"/jobs/{job.job_id}"))
    assert "failed at ollama, by tip-v1" in said
    assert "The endpoint does not answer" in said


async def test_jobs_without_judges_and_live_ones_have_no_section(gateway: Running) -> None:
    world = gateway.world
    assert 'id="job-judges"' not in await page(gateway, f"/jobs/{completed(world).job_id}")
    assert len(asked_of_judges(gateway)) == 1
    job = world.start(world.add(spec(suite="demo"), "local").job_id)
    world.advance(job.job_id, 50)
    assert 'id="job-judges"' not in await page(gateway, f"/jobs/{job.job_id}?open={job.plan[0].task}:1")
    assert len(asked_of_judges(gateway)) == 1, "what has not finished has no judges"


async def test_the_page_stands_while_judges_cannot_be_read(gateway: Running) -> None:
    job = completed(gateway.world)
    judged(gateway.world, job)
    await gateway.stop_service("results")
    text = await page(gateway, f"/jobs/{job.job_id}")
    assert 'id="job-judges"' not in text
    assert "Suite score" in text


async def test_an_opened_item_shows_what_each_judge_said_of_it(gateway: Running) -> None:
    job = completed(gateway.world)
    task = job.plan[0].task
    run = judged(gateway.world, job)
    scores = {"relevance": 4, "actionability": 2, "tone": 5}
    told = json.dumps({"reason": "Two tips repeat.", **scores})
    answered, unparsed = item_result_pb2.OUTCOME_ANSWERED, item_result_pb2.OUTCOME_UNPARSED
    run.judgements.add(number=1, outcome=answered, scores=json.dumps(scores), response=told)
    run.judgements.add(
        number=2, outcome=unparsed, response=f"I would rather not. {HOSTILE * (1 + LONG // len(HOSTILE))}"
    )
    for address in (f"/jobs/{job.job_id}?open={task}:1", f"/jobs/{job.job_id}/items/{task}/1"):
        answer = await gateway.client.get(address, headers={"Accept": "text/html"})
        raw = answer.text[answer.text.index('class="opinions"') :]
        asked = asked_of_judges(gateway)[-1]
        assert (asked.task, asked.item, asked.repeat) == (task, 1, 0)
        assert "relevance <b>4 of 1–5</b>" in raw
        assert "Two tips repeat." in raw
        assert "&#34;reason&#34;" not in raw
        assert "judgement 2" in raw
        assert "unparsed" in raw
        assert "moves no score" in raw
        assert "<details><summary>I would rather not. " in raw, "long words are folded"
        assert "<script>" not in raw.split("</div>\n  </div>")[0]
        assert "&lt;script&gt;" in raw
    await page(gateway, f"/jobs/{completed(gateway.world).job_id}?open={task}:1")
    assert not asked_of_judges(gateway)[-1].task, "not asked again without judges"


async def test_what_rubrics_and_judges_write_is_shown_as_text(gateway: Running) -> None:
    job, rubric = completed(gateway.world), deepcopy(CORRECT)
    rubric["instructions"] = rubric["criteria"][0]["description"] = HOSTILE
    rubric["criteria"][0]["examples"] = [{"answer": HOSTILE, "score": HOSTILE[:80], "why": HOSTILE}]
    rubric["criteria"][0]["choices"][0]["name"] = HOSTILE[:80]
    run = judged(gateway.world, job, rubric)
    run.job.reason = HOSTILE
    answer = await gateway.client.get(f"/jobs/{job.job_id}", headers={"Accept": "text/html"})
    part = answer.text[answer.text.index('<section id="job-judges"') :]
    part = part[: part.index("</section>")]
    assert "<script" not in part
    assert "<img" not in part
    assert "<hx-partial" not in part
    assert part.count("&lt;img") >= 6


async def test_a_judges_job_leads_to_what_it_judges(gateway: Running) -> None:
    world = gateway.world
    job = completed(world)
    _, where = await started(gateway, job, {"model": "ollama|mistral:7b"})
    made = list(world.jobs.values())[-1]
    text = await page(gateway, where)
    assert re.search(rf'Judges the answers of\s<a href="/jobs/{job.job_id}">', text)
    assert "Judge these answers" not in text
    world.rows[made.spec.dataset.dataset_id] = [_row("rte/3/0"), _row("rte/3/1#2")]
    world.finish(world.start(made.job_id).job_id)
    first = await page(gateway, f"/jobs/{made.job_id}/items/rows/0")
    assert f'<a href="/jobs/{job.job_id}/items/rte/3">this answer</a>' in first
    second = await page(gateway, f"/jobs/{made.job_id}/items/rows/1")
    assert f'<a href="/jobs/{job.job_id}/items/rte/3?repeat=1">this answer</a>' in second


def _row(custom_id: str) -> dataset_pb2.DatasetRow:
    return dataset_pb2.DatasetRow(
        custom_id=custom_id, messages=[dataset_pb2.ChatMessage(role="user", content="Judge.")]
    )


async def started(gateway: Running, job: job_pb2.Job, sent: dict[str, str], status: int = 303) -> tuple[str, str]:
    """The page after sending the form, and where it leads."""
    answer = await gateway.client.post(f"/jobs/{job.job_id}/judge", data=sent, follow_redirects=False)
    assert answer.status_code == status, answer.text
    return html.unescape(answer.text), answer.headers.get("location", "")


async def test_the_form_starts_a_judge_and_leads_to_it(gateway: Running) -> None:
    world = gateway.world
    job = completed(world)
    assert f'href="/jobs/{job.job_id}/judge"' in await page(gateway, f"/jobs/{job.job_id}")
    text = await page(gateway, f"/jobs/{job.job_id}/judge")
    assert '<option value="ollama|mistral:7b">mistral:7b</option>' in text
    assert "Is the answer correct?" in text
    example = text[text.index('name="rubric" rows') :].split(">", 1)[1].split("</textarea>")[0]
    assert rubrics.parse(example).criteria, "the example works as it stands"
    sent = {"model": "ollama|mistral:7b", "by": "question", "rubric": "not looked at", "request_id": "r1"}
    _, where = await started(gateway, job, sent)
    asked = world.specs[-1]
    assert where == f"/jobs/{list(world.jobs)[-1]}"
    assert (asked.endpoint, asked.model, asked.judging.job_id) == ("ollama", "mistral:7b", job.job_id)
    rubric = rubrics.parse(asked.judging.rubric)
    assert [(one.name, one.value) for one in rubric.criteria[0].choices] == [
        ("right", 1),
        ("partly", 0.5),
        ("wrong", 0),
    ]
    assert (await started(gateway, job, sent))[1] == where, "sent twice, it starts once"
    own = {"by": "rubric", "rubric": example.replace("\n", "\r\n"), "repeats": "3", "budget_usd": "1.5"}
    own |= {"model": "gemini|gemini-2.5-flash", "num_predict": "400"}
    _, where = await started(gateway, job, sent | own | {"request_id": "r2"})
    asked = world.specs[-1]
    assert rubrics.parse(asked.judging.rubric) == rubrics.parse(example)
    assert (asked.judging.repeats, asked.budget_usd, asked.sampling.max_tokens) == (3, 1.5, 400)


async def test_a_refusal_is_said_in_its_place_and_what_was_typed_stays(gateway: Running) -> None:
    world = gateway.world
    job = completed(world)
    before = len(world.jobs)
    good = {"model": "ollama|mistral:7b", "by": "rubric", "repeats": "2"}
    for rubric, said in (
        ("{", "The rubric is not JSON."),
        ('{"version": "</textarea><script>"}', 'The rubric needs a version such as "tip-v1"'),
        ('{"version": "a", "criteria": [{"name": "x", "lowest": 5, "highest": 1}]}', "a scale from 5 to 1"),
        (json.dumps({"version": "a", "instructions": "x" * 9000}), "bytes in instructions"),
    ):
        text, _ = await started(gateway, job, good | {"rubric": rubric}, 422)
        assert f'id="rubric-problem" role="alert">{said}' in text or said in text.split('id="rubric-problem"')[1][:300]
        assert rubric in text
        assert 'value="ollama|mistral:7b" selected' in text
        assert 'name="repeats" value="2"' in text
    raw = await gateway.client.post(
        f"/jobs/{job.job_id}/judge", data=good | {"rubric": "</textarea><script>"}, headers={"HX-Request": "true"}
    )
    assert raw.status_code == 422
    assert raw.text.startswith("<form")
    assert "<script>" not in raw.text
    for wrong, said in (
        ({"model": ""}, "Choose a model."),
        ({"repeats": "11"}, "Judgements of each answer must be"),
        ({"budget_usd": "much"}, "Budget must be"),
        ({"model": "gemini|gemini-2.5-flash", "budget_usd": "1"}, "A budget needs"),
        ({"model": "nowhere|m"}, "nowhere"),
    ):
        text, _ = await started(gateway, job, good | {"by": "question"} | wrong, 422)
        assert said in text
    assert len(world.jobs) == before


async def test_only_answers_of_completed_jobs_can_be_judged(gateway: Running) -> None:
    world = gateway.world
    live = world.start(world.add(spec(suite="demo"), "local").job_id)
    assert "Judge these answers" not in await page(gateway, f"/jobs/{live.job_id}")
    assert "has not completed" in await page(gateway, f"/jobs/{live.job_id}/judge", 409)
    await started(gateway, live, {"model": "ollama|mistral:7b"}, 409)
    job = completed(world)
    world.results[job.job_id].texts_dropped = "2026-03-01T00:00:00Z"
    assert "Judge these answers" not in await page(gateway, f"/jobs/{job.job_id}")
    judge = judged(world, completed(world)).job
    world.jobs[judge.job_id] = judge
    assert "judges answers itself" in await page(gateway, f"/jobs/{judge.job_id}/judge", 409)


def judged_pairs(world: World, job: job_pb2.Job, against: job_pb2.Job, share: float) -> results_service_pb2.JudgeRun:
    run = judged(world, job)
    run.rubric.CopyFrom(rubrics.comparing(None))
    run.job.spec.judging.against_job_id, run.job.spec.judging.equal_pairs = against.job_id, 7
    run.pairs.pairs = 40
    one = run.pairs.preferences.add(metric="better", better=20, equal=15, worse=5)
    figures = {"preferred": share, "same_in_both_orders": 0.8, "first_preferred": 0.7}
    for name, value in figures.items():
        getattr(one, name).CopyFrom(results_service_pb2.Interval(value=value, low=value - 0.1, high=value + 0.1, n=40))
    return run


@pytest.mark.parametrize(
    ("share", "verdict"),
    [
        (0.65, "It prefers these answers: in 65.0 % (55.0–75.0) of 40 pairs."),
        (0.3, "these only in 30.0 % (20.0–40.0) of 40 pairs."),
        (0.52, "It shows no preference between these answers and those of job"),
    ],
)
async def test_a_judge_that_compared_two_jobs_says_which_it_prefers(
    gateway: Running, share: float, verdict: str
) -> None:
    job, other = completed(gateway.world), completed(gateway.world)
    run = judged_pairs(gateway.world, job, other, share)
    people = results_service_pb2.Interval(value=0.9, low=0.6, high=0.97, n=10)
    run.pairs.people.MergeFrom(results_service_pb2.PreferenceAgreement(pairs=10, accuracy=people))
    text = await page(gateway, f"/jobs/{job.job_id}")
    said = section(text)
    assert verdict in said
    assert f'<a href="/jobs/{other.job_id}">job <code>' in text
    assert "said the same in 80.0 % (70.0–90.0) of them. Of its preferences, 70.0 % (60.0–80.0) are for the" in said
    assert "7 pairs of equal answers were left out." in said
    assert "On 90.0 % (60.0–97.0) of 10 pairs that people compared side by side, it prefers what they prefer." in said
    assert f'href="/side-by-side?jobs={job.job_id},{other.job_id}"' in text
    # The mean over single judgements would be another figure of the same thing.
    assert "72.5" not in said


async def test_an_opened_answer_shows_which_of_two_the_judge_prefers(gateway: Running) -> None:
    job, other = completed(gateway.world), completed(gateway.world)
    run = judged_pairs(gateway.world, job, other, 0.5)
    for number, preferred in enumerate(("first", "first", "tie"), 1):
        scores, outcome = json.dumps({"better": preferred}), item_result_pb2.OUTCOME_ANSWERED
        run.judgements.add(number=number, outcome=outcome, scores=scores, other_first=number % 2 == 0)
    task = gateway.world.jobs[job.job_id].plan[0].task
    said = " ".join(re.sub(r"<[^>]*>", " ", await page(gateway, f"/jobs/{job.job_id}/items/{task}/1")).split())
    assert "judgement 1 better this answer, which stood first" in said
    assert "judgement 2 better the other answer, which stood first" in said
    assert "judgement 3 better neither" in said


async def test_the_form_compares_two_jobs(gateway: Running) -> None:
    job, other = completed(gateway.world), completed(gateway.world)
    address = f"/jobs/{job.job_id}/judge"
    text = await page(gateway, f"{address}?against={other.job_id}")
    assert "Which answer is better?" in text
    assert f'name="against" value="{other.job_id}"' in text
    sent = {"model": "ollama|mistral:latest", "against": other.job_id, "by": "question"}
    made = await gateway.client.post(address, data=sent)
    assert made.status_code == 303, made.text
    judging = gateway.world.jobs[made.headers["location"].removeprefix("/jobs/")].spec.judging
    assert (judging.job_id, judging.against_job_id) == (job.job_id, other.job_id)
    wrong = await gateway.client.post(address, data=sent | {"model": ""})
    assert wrong.status_code == 422
    assert f'name="against" value="{other.job_id}"' in wrong.text
    assert (await gateway.client.get(f"{address}?against={job.job_id[:-4]}0000")).status_code == 404


async def test_two_jobs_side_by_side_can_be_compared_by_a_judge(gateway: Running) -> None:
    job, other = completed(gateway.world), completed(gateway.world)
    text = await page(gateway, f"/side-by-side?jobs={job.job_id},{other.job_id}")
    assert f'href="/jobs/{job.job_id}/judge?against={other.job_id}"' in text


async def test_the_form_says_what_the_judge_may_need(gateway: Running) -> None:
    """Calls at once; time, tokens and cost from the model's last run as a judge."""
    world, job = gateway.world, completed(gateway.world)
    address, items = f"/jobs/{job.job_id}/judge", job.progress.items_total
    assert f"{items:,} calls at the most." in await page(gateway, address)
    typed = {"model": "ollama|mistral:latest", "repeats": "3", "against": completed(world).job_id}
    part = {"HX-Request": "true"}
    answer = await gateway.client.get(address, params=typed, headers=part)
    assert f"{6 * items:,} calls at the most." in answer.text
    assert "not known before it has judged once" in answer.text
    made = (await gateway.client.post(address, data=typed)).headers["location"].removeprefix("/jobs/")
    world.finish(world.start(made, ago_s=100).job_id)
    answer = await gateway.client.get(address, params=typed | {"repeats": "x"}, headers=part)
    assert f"{2 * items:,} calls at the most." in answer.text
    assert f'From <a class="link" href="/jobs/{made}">its last run as a judge</a>: about' in answer.text
    (asked,) = [one for one in world.asked if isinstance(one, results_service_pb2.EstimateRunRequest)]
    assert (asked.job_id, asked.items) == (made, 2 * items)


async def test_a_judge_outside_is_shown_with_judges_and_waits_for_nothing(gateway: Running) -> None:
    job = completed(gateway.world)
    rubric = rubrics.of_value(TIPS)
    outside = results_service_pb2.OutsideJudge(judge="acme/j", rater="bot", rubric=rubric, judged=40, answers=50)
    for name in rubrics.names(rubric):
        outside.means.add(criterion=name, score=results_service_pb2.Interval(value=0.5, low=0.4, high=0.6, n=40))
    found = gateway.world.judges.setdefault(job.job_id, results_service_pb2.ListJudgesResponse())
    found.outside.append(outside)
    text = await page(gateway, f"/jobs/{job.job_id}")
    said = section(text)
    assert "acme/j outside sent by bot, by tip-v1" in said, said
    assert "40 of 50 answers" in said, said
    assert "tone 3.0" in said, said
    assert "It starts by itself" not in said
    assert 'data-watch="jobs"' not in text[text.index('id="job-judges"') :][:300]
