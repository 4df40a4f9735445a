"use strict";
// One pair at a time. Everything from the project is set as text, never as markup. A decision counts as kept only when the
// service has answered; until then the pair stays, and can be decided again.
(() => {
  const at = (id) => document.getElementById(id);
  const token = decodeURIComponent(location.hash.slice(1));
  let state = null;
  let seconds = 0;
  let since = 0;
  let busy = false;
  let asked = "";
  let counted = 0;

  const say = (text, wrong = false) => {
    at("said").textContent = text;
    at("said").className = wrong ? "wrong" : "";
  };

  const ask = async (path, body) => {
    const headers = { Authorization: `Bearer ${token}` };
    const options = body === undefined ? { headers } : { method: "POST", headers: { ...headers, "Content-Type": "application/json" }, body: JSON.stringify(body) };
    let answer;
    try {
      answer = await fetch(path, options);
    } catch {
      throw new Error("Not kept: the service does not answer. Start it again with the same command, open its new address, and decide again.");
    }
    const content = await answer.json().catch(() => null);
    if (!answer.ok) {
      if (answer.status === 401) throw new Error("The address lacks its token, or has an old one; open the address that the command printed.");
      throw new Error(content?.error?.message ? `Not kept: ${content.error.message}` : `Not kept: error ${answer.status}.`);
    }
    return content;
  };

  // time counts only while the page can be seen
  const clock = () => {
    if (since) seconds += (performance.now() - since) / 1000;
    since = document.hidden ? 0 : performance.now();
  };
  document.addEventListener("visibilitychange", clock);

  const fill = (element, runs) => {
    element.replaceChildren(
      ...runs.map(([text, marked]) => {
        if (!marked) return document.createTextNode(text);
        const mark = document.createElement("mark");
        mark.textContent = text;
        return mark;
      }),
    );
  };

  const showNote = (shown) => {
    at("note-row").hidden = !shown;
    at("note-button").setAttribute("aria-expanded", String(shown));
    if (shown) at("note").focus();
  };

  const show = (next) => {
    state = next;
    const { pair } = state;
    at("judge").textContent = state.judge;
    at("count").textContent = state.settles ? `${state.progress.disputed} to settle` : `${state.progress.judged} of ${state.progress.chosen} judged` + (state.progress.skipped ? `, ${state.progress.skipped} skipped` : "");
    at("progress").max = Math.max(1, state.progress.chosen);
    at("progress").value = state.progress.judged;
    at("progress").textContent = at("count").textContent;
    at("instructions").textContent = state.instructions;
    at("most").textContent = String(state.scale.length - 1);
    at("main").hidden = !pair;
    at("done").hidden = Boolean(pair);
    for (const button of document.querySelectorAll(".scale button, [data-do=skip], [data-do=note]")) button.disabled = !pair;
    if (!pair) {
      at("done-title").textContent = state.settles ? "No disagreement is left." : "Nothing is left to judge.";
      at("done-text").textContent = state.progress.judged < state.progress.chosen ? "The other pairs are in the hands of other judges." : "You can close this page. nlp-retrieval judge report shows what follows.";
      at("done-title").focus();
      return;
    }
    const isNew = asked !== "" && asked !== pair.query_id;
    asked = pair.query_id;
    at("what").textContent = isNew ? "New question" : "Question";
    at("question").textContent = pair.question;
    fill(at("title"), pair.title);
    fill(at("content"), pair.content);
    at("grades").hidden = !pair.grades;
    at("grades").replaceChildren(
      ...Object.entries(pair.grades || {}).map(([judge, grade]) => {
        const row = document.createElement("div");
        const name = document.createElement("dt");
        const given = document.createElement("dd");
        name.textContent = judge;
        given.textContent = `${grade} ${state.scale[grade]}`;
        row.append(name, given);
        return row;
      }),
    );
    at("note").value = "";
    showNote(false);
    scrollTo(0, 0);
    at("passage").focus({ preventScroll: true });
    seconds = 0;
    since = document.hidden ? 0 : performance.now();
  };

  const send = async (path, body, done) => {
    if (busy) return;
    busy = true;
    try {
      const next = await ask(path, body);
      show(next);
      say(done);
      if (path !== "/next" && counted++ % 10 === 0) decided();
    } catch (error) {
      say(error.message, true);
    } finally {
      busy = false;
    }
  };

  const decided = async () => {
    try {
      at("decided").textContent = (await ask("/decided")).sentence;
    } catch {
      at("decided").textContent = "";
    }
  };

  const decide = (decision, grade = null) => {
    if (!state?.pair) return;
    clock();
    const note = at("note").value.trim();
    const done = decision === "skipped" ? "Skipped." : `Kept: ${grade} ${state.scale[grade]}.`;
    send("/judge", { number: state.pair.number, decision, grade, note, seconds: Math.min(seconds, 86400), sha256: state.pair.sha256 }, done);
  };

  const act = {
    skip: () => decide("skipped"),
    undo: () => send("/undo", {}, "Taken back."),
    note: () => showNote(at("note-row").hidden),
    help: () => at("help").showModal(),
    close: () => at("help").close(),
  };
  document.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (!button) return;
    if (button.dataset.grade !== undefined) decide("graded", Number(button.dataset.grade));
    else act[button.dataset.do]?.();
  });
  const keys = { s: "skip", u: "undo", n: "note", "?": "help" };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.repeat || at("help").open) return;
    if (event.target.id === "note") {
      if (event.key === "Escape") at("passage").focus();
      return;
    }
    const grade = /^[0-9]$/.test(event.key) ? Number(event.key) : -1;
    if (grade >= 0 && state?.pair && grade < state.scale.length) decide("graded", grade);
    else if (keys[event.key]) act[keys[event.key]]();
    else return;
    event.preventDefault();
  });

  (async () => {
    try {
      const first = await ask("/next", {});
      at("scale").replaceChildren(
        ...first.scale.map((name, grade) => {
          const button = document.createElement("button");
          const key = document.createElement("kbd");
          button.type = "button";
          button.dataset.grade = String(grade);
          key.textContent = String(grade);
          button.append(key, ` ${name}`);
          return button;
        }),
      );
      show(first);
      decided();
    } catch (error) {
      say(error.message, true);
    }
  })();
})();
