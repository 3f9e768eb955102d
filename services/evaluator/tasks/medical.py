"""Medical questions: MedQA (Jin et al. 2020), MedMCQA (Pal et al. 2022), PubMedQA (Jin et al. 2019), and the six
medical subjects of MMLU.

Contexts and continuations of log-likelihood mode are those of lm_eval 0.4.13. It reads MedQA and PubMedQA from other
copies of the data, the second by a script that no longer loads.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from services.evaluator.data import tables
from services.evaluator.data.reader import Source
from services.evaluator.items.metrics import ACCURACY, MACRO_F1
from services.evaluator.tasks import mmlu
from services.evaluator.tasks.kinds.definition import Definition, Row
from services.evaluator.tasks.kinds.multiple_choice import MultipleChoice
from services.evaluator.tasks.kinds.text import Classification
from touchstone.v1.suite_pb2 import Weighting

_IDS = """
7482275 7497757 7547656 7664228 7860319 8165771 8199520 8375607 8521557 8566975 8738894 8847047 8910148
8916748 8921484 9100537 9142039 9199905 9363244 9427037 9465206 9483814 9488747 9542484 9582182 9603166
9616411 9722752 9920954 10135926 10158597 10173769 10201555 10223070 10331115 10375486 10381996 10401824
10456814 10490564 10548670 10749257 10781708 10798511 10834864 10877371 10922093 10966943 10973547 11035130
11079675 11138995 11146778 11411430 11438275 11458136 11481172 11481599 11483547 11567820 11570976 11833948
11862129 11867487 11926574 11943048 11955750 11970923 11977907 12006913 12040336 12070552 12090319 12094116
12098035 12121321 12145243 12163782 12172698 12221908 12377809 12380309 12407608 12419743 12442934 12484580
12595848 12630042 12632437 12765819 12769830 12790890 12805495 12846929 12848629 12913878 12963175 12970636
14551704 14599616 14627582 14631523 14652839 14692023 14697414 14872327 14968373 15041506 15050326 15052394
15053041 15095519 15151701 15208005 15223779 15388567 15488260 15489384 15502995 15528969 15597845 15708048
15774570 15841770 15918864 15919266 15943725 15995461 16046584 16147837 16266387 16296668 16392897 16403186
16418930 16465002 16538201 16678696 16713745 16735905 16769333 16772913 16776337 16778275 16809243 16816043
16827975 16872243 16962519 16968876 16971978 17032327 17051586 17054994 17062234 17076091 17192736 17208539
17274051 17276182 17306983 17342562 17355582 17445978 17565137 17598882 17621202 17682349 17691856 17894828
17910536 17940352 17971187 18019905 18041059 18065862 18158048 18179827 18182265 18222909 18235194 18239988
18243752 18274917 18284441 18307476 18319270 18322741 18359123 18378554 18399830 18435678 18472368 18496363
18507507 18537964 18540901 18565233 18568239 18568290 18570208 18594195 18616781 18667100 18693227 18708308
18714572 18719011 18783922 18802997 18926458 18928979 19027440 19100463 19103915 19106867 19108857 19130332
19142546 19237087 19302863 19351635 19394934 19398929 19419587 19430778 19468282 19481382 19482903 19520213
19546588 19575104 19578820 19593710 19640728 19694846 19836806 19854401 19913785 19923859 20064872 20084845
20121683 20187289 20197761 20297950 20306735 20337202 20354380 20537205 20538207 20549895 20571467 20577124
20602101 20602784 20605051 20608141 20629769 20736672 20736887 20850631 20971618 21074975 21123461 21164063
21194998 21214884 21228436 21252642 21256734 21342862 21346501 21361755 21394762 21420186 21431987 21459725
21481154 21645374 21658267 21689015 21712147 21726930 21789019 21823940 21845457 21848798 21849531 21850494
21864397 21889895 21946341 21952349 22011946 22012962 22023714 22042121 22075911 22117569 22154448 22188074
22227642 22233470 22236315 22237146 22251324 22266735 22302761 22348433 22350859 22365295 22382608 22453060
22491528 22497340 22504515 22513023 22522271 22532370 22534881 22537902 22540518 22617083 22644412 22656647
22668712 22668852 22680064 22683044 22694248 22720085 22758782 22825590 22876568 22902073 23025584 23076787
23149821 23177368 23224030 23283159 23321509 23347337 23359100 23361217 23375036 23379759 23412195 23422012
23448747 23455575 23495128 23497210 23517744 23539689 23568387 23571528 23621776 23677366 23690198 23736032
23761381 23794696 23806388 23810330 23848044 23870157 23916653 23949294 23992109 24013712 24014276 24061619
24073931 24139705 24191126 24245816 24270957 24298614 24318956 24336869 24340838 24352924 24359102 24449622
24476003 24481006 24495711 24507422 24516646 24577079 24591144 24614789 24622801 24625433 24666444 24669960
24671913 24698298 24739448 24751724 24799031 24809662 24922528 24977765 24995509 24996865 25007420 25043083
25079920 25103647 25277731 25280365 25311479 25371231 25394614 25475395 25481573 25488308 25499207 25503376
25521278 25571931 25588461 25604390 25614468 25669733 25675614 25699562 25725704 25752725 25752912 25756710
25779009 25793749 25810292 25887165 25940336 25986020 26037986 26113007 26126304 26134053 26163474 26200172
26209118 26215326 26304701 26348845 26370095 26418441 26419377 26460153 26471488 26516021 26536001 26548832
26556589 26561905 26578404 26601554 26606599 26708803 26778755 26820719 26852225 26864326 26879871 26907557
26923375 26965932 27040842 27044366 27050489 27096199 27131771 27136599 27217036 27281318 27287237 27338535
27394685 27456836 27549226 27592038 27615402 27642458 27643961 27757987 27818079 27858166 27989969 28056802
28143468 28196511 28247485 28359277 28707539 29112560
"""

TEST_IDS = frozenset(map(int, _IDS.split()))


SUITE = "medical"
TITLE = "Medical"
DESCRIPTION = "Exam questions for physicians (MedQA, MedMCQA, MMLU) and questions on research abstracts (PubMedQA)."
# Papers report the mean of these nine, such as Qiu et al., Nature Communications 15 (2024), table 3.
WEIGHTING = Weighting.WEIGHTING_TASKS

_EXAMS, _RESEARCH, _MMLU = "Exams", "Research", "MMLU subjects"
_MMLU_SUBJECTS = (
    "anatomy",
    "clinical_knowledge",
    "college_biology",
    "college_medicine",
    "medical_genetics",
    "professional_medicine",
)
_FOUR_OPTIONS = pa.struct([(letter, pa.string()) for letter in "ABCD"])


def _medqa(row: Row) -> Row:
    return {**row, "choices": [row["options"][letter] for letter in "ABCD"]}


def _medmcqa(row: Row) -> Row:
    return {**row, "choices": [row["opa"], row["opb"], row["opc"], row["opd"]]}


def _pubmedqa(row: Row) -> Row:
    """The abstract without its conclusion (`long_answer`), which would give the answer away."""
    return {**row, "abstract": "\n".join(row["context"]["contexts"])}


def _official_test(table: pa.Table) -> pa.Array:
    return pc.is_in(table["pubid"], tables.integer_array(sorted(TEST_IDS)))


def _not_in_test(table: pa.Table) -> pa.Array:
    return pc.invert(_official_test(table))


TASKS: tuple[Definition, ...] = (
    MultipleChoice(
        suite=SUITE,
        task="medqa",
        title="MedQA",
        source=Source("GBaker/MedQA-USMLE-4-options", "default", "0fb93dd23a7339b6dcd27e241cb9b5eca62d4d18"),
        split="test",
        texts={"question": "Question"},
        instruction="Answer this question of a medical licensing exam.",
        columns={"question": pa.string(), "options": _FOUR_OPTIONS, "answer_idx": pa.string()},
        prepare=_medqa,
        target="answer_idx",
        context="Question: {question}\n{lettered}\nAnswer:",
        metrics=(ACCURACY,),
        published_items=1273,
        category=_EXAMS,
    ),
    MultipleChoice(
        suite=SUITE,
        task="medmcqa",
        title="MedMCQA",
        source=Source("openlifescienceai/medmcqa", "default", "91c6572c454088bf71b679ad90aa8dffcd0d5868"),
        texts={"question": "Question"},
        instruction="Answer this question of a medical entrance exam.",
        columns={
            "question": pa.string(),
            **dict.fromkeys(("opa", "opb", "opc", "opd"), pa.string()),
            "cop": pa.int64(),
        },
        prepare=_medmcqa,
        target="cop",
        context="Question: {question}\nChoices:\n{lettered}\nAnswer:",
        metrics=(ACCURACY,),
        published_items=4183,
        category=_EXAMS,
        optional=True,
    ),
    Classification(
        suite=SUITE,
        task="pubmedqa",
        title="PubMedQA",
        source=Source("qiaojin/PubMedQA", "pqa_labeled", "9001f2853fb87cab8d220904e0de81ac6973b318"),
        # The Hub has the 1,000 labelled rows as one split: half of them are the official test, examples come from the
        # other half.
        split="train",
        train_split="train",
        keep=_official_test,
        train_keep=_not_in_test,
        texts={"abstract": "Abstract", "question": "Question"},
        instruction="Answer the question from the abstract: yes, no, or maybe if the abstract leaves it open.",
        columns={
            "context": pa.struct([("contexts", pa.list_(pa.string()))]),
            "question": pa.string(),
            "final_decision": pa.string(),
            "pubid": pa.int64(),
        },
        prepare=_pubmedqa,
        target="final_decision",
        labels=("yes", "no", "maybe"),
        context="Abstract: {abstract}\nQuestion: {question}\nAnswer:",
        continuations=("yes", "no", "maybe"),
        metrics=(ACCURACY, MACRO_F1),
        published_items=500,
        category=_RESEARCH,
    ),
    *(mmlu.subject(SUITE, task, _MMLU) for task in _MMLU_SUBJECTS),
)
