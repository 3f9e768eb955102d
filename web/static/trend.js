// The trend chart's tooltip, by mouse and by arrow keys. The text is that of the run's row in the table below it.
"use strict";
(() => {
  const NEAR = 48;
  const tip = document.createElement("div");
  tip.className = "tip";
  tip.setAttribute("role", "status");
  document.body.append(tip);

  const chartOf = (target) => target.closest?.("svg.trend");
  const runs = (chart) => [...chart.querySelectorAll("[data-run]")];
  const middle = (mark) => {
    const box = mark.getBoundingClientRect();
    return { x: box.x + box.width / 2, y: box.y + box.height / 2 };
  };
  const rowOf = (mark) => document.getElementById(`run-${mark.dataset.run}`);

  function hide() {
    tip.replaceChildren();
    for (const one of document.querySelectorAll(".trend.live, .trend .on")) one.classList.remove("live", "on");
  }

  function line(tag, text) {
    const element = document.createElement(tag);
    element.textContent = text;
    return element;
  }

  function show(chart, mark) {
    const row = rowOf(mark);
    if (mark.classList.contains("on") || !row) return;
    hide();
    const [name, at, score, interval, items, job] = [...row.cells].map((cell) => cell.textContent.trim());
    tip.append(line("b", `${name} ${score}`), line("span", `95 % CI ${interval}, n = ${items}`), line("span", `${at} UTC, job ${job}`));
    mark.classList.add("on");
    mark.closest(".line").classList.add("on");
    chart.classList.add("live");
    const guide = chart.querySelector(".guide");
    const [x] = mark.getAttribute("transform").match(/[\d.]+/);
    guide.setAttribute("x1", x);
    guide.setAttribute("x2", x);
    const place = middle(mark);
    const beyond = place.x + 12 + tip.offsetWidth > innerWidth - 8;
    tip.style.left = `${Math.max(8, beyond ? place.x - 12 - tip.offsetWidth : place.x + 12)}px`;
    tip.style.top = `${Math.min(place.y + 12, innerHeight - tip.offsetHeight - 8)}px`;
  }

  function nearest(chart, x, y) {
    let best = null;
    let least = NEAR;
    for (const mark of runs(chart)) {
      const place = middle(mark);
      const distance = Math.hypot(place.x - x, place.y - y);
      if (distance < least) [best, least] = [mark, distance];
    }
    return best;
  }

  // Left and right along a line, up and down to the line drawn above or below.
  function neighbour(chart, now, key) {
    const own = [...now.closest(".line").querySelectorAll("[data-run]")];
    const at = own.indexOf(now);
    if (key === "ArrowLeft") return own[at - 1];
    if (key === "ArrowRight") return own[at + 1];
    if (key === "Home") return own[0];
    if (key === "End") return own.at(-1);
    const here = middle(now);
    const beside = [...chart.querySelectorAll(".line")]
      .filter((one) => one !== now.closest(".line"))
      .map((one) => [...one.querySelectorAll("[data-run]")].map((mark) => ({ mark, ...middle(mark) })))
      .map((marks) => marks.sort((a, b) => Math.abs(a.x - here.x) - Math.abs(b.x - here.x))[0])
      .filter((one) => one && (key === "ArrowUp" ? one.y < here.y : one.y > here.y))
      .sort((a, b) => Math.abs(a.y - here.y) - Math.abs(b.y - here.y));
    return beside[0]?.mark;
  }

  document.addEventListener("pointermove", (event) => {
    const chart = chartOf(event.target);
    if (!chart) {
      if (!document.activeElement?.matches("svg.trend")) hide();
      return;
    }
    const mark = nearest(chart, event.clientX, event.clientY);
    if (mark) show(chart, mark);
    else hide();
  });
  document.addEventListener("click", (event) => {
    const chart = chartOf(event.target);
    const mark = chart && nearest(chart, event.clientX, event.clientY);
    if (mark) rowOf(mark)?.querySelector("a").click();
  });
  document.addEventListener("focusin", (event) => {
    const chart = chartOf(event.target);
    if (chart?.matches(":focus-visible")) show(chart, chart.querySelector(".on") || chart.querySelector(".line").lastElementChild);
  });
  document.addEventListener("focusout", (event) => chartOf(event.target) && hide());
  document.addEventListener("scroll", hide, { passive: true });
  document.addEventListener("keydown", (event) => {
    const chart = chartOf(event.target);
    if (!chart) return;
    if (event.key === "Escape") return hide();
    const now = chart.querySelector(".mark.on");
    if (event.key === "Enter") return now && rowOf(now).querySelector("a").click();
    if (!/^(Arrow|Home$|End$)/.test(event.key)) return;
    event.preventDefault();
    const next = now ? neighbour(chart, now, event.key) : chart.querySelector(".line").lastElementChild;
    if (next) show(chart, next);
  });
})();
