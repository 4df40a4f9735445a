// Filters, keys and decisions. Without it everything can be read. Decisions are posted to the service that the page came from.
(() => {
  "use strict";
  const controls = document.querySelector(".controls");
  if (!controls) {
    return;
  }
  const articles = [...document.querySelectorAll("article.citation")];
  const filters = [...controls.querySelectorAll("[data-filter]")];
  const status = controls.querySelector("output");
  const name = controls.querySelector(".by");
  const dialog = document.querySelector("dialog");
  const citations = new Map(articles.map((article) => [article, citationOf(article.dataset)]));
  const histories = new Map(articles.map((article) => [article, JSON.parse(article.dataset.history || "[]")]));
  const posted = [];
  let last = null;
  function citationOf({ sentence, cited, version }) {
    return JSON.stringify([sentence, cited, version]);
  }

  function pressed(filter) {
    return new Set([...filter.querySelectorAll('[aria-pressed="true"]')].map((button) => button.value));
  }

  // within a filter any of what is pressed, and both filters
  function filter() {
    const wanted = filters.map((each) => [each.dataset.filter, pressed(each)]);
    for (const article of articles) {
      article.hidden = !wanted.every(([attribute, values]) => !values.size || values.has(article.dataset[attribute]));
    }
    const left = articles.filter((article) => !article.hidden).length;
    status.value = left < articles.length ? `${left} of ${articles.length} shown` : "";
  }

  function reviewer() {
    return name.value.trim().replace(/\s+/g, " ");
  }

  function about(article) {
    return posted.filter((review) => citationOf(review) === citations.get(article));
  }

  // as the project decides: each reviewer's last decision that was not taken back, and of these the last one
  function decisionOf(article) {
    const standing = new Map();
    const notes = new Set();
    const all = [...histories.get(article), ...about(article)];
    for (const { decision, by } of all.sort((one, other) => Date.parse(one.date) - Date.parse(other.date))) {
      if (decision === "noted") {
        notes.add(by);
        continue;
      }
      standing.delete(by);
      if (decision === "withdrawn") {
        notes.delete(by);
      } else {
        standing.set(by, decision);
      }
    }
    return [...standing.values()].at(-1) ?? (notes.size ? "noted" : "");
  }

  function show(article) {
    const line = article.querySelector(".decision");
    if (!line) {
      return;
    }
    line.dataset.kept ??= line.textContent;
    const said = about(article).map((review) => `${review.decision} by ${review.by}${review.note ? `: \u201c${review.note}\u201d` : ""}`);
    article.dataset.decision = decisionOf(article);
    line.firstElementChild.textContent = [...said.reverse(), line.dataset.kept].filter(Boolean).join("; ");
    line.hidden = !line.textContent;
    const passes = { accepted: true, rejected: false }[article.dataset.decision] ?? article.dataset.status === "PASS";
    document.getElementById(`mark-${article.dataset.number}`)?.classList.toggle("fine", passes);
  }

  async function post(review) {
    const response = await fetch("reviews", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(review),
    });
    if (!response.ok) {
      throw new Error((await response.json()).error.message);
    }
    return response.json();
  }

  // returns whether it is kept
  async function decide(article, decision, note = "") {
    const by = reviewer();
    if (!by) {
      status.value = "Write your name first.";
      name.focus();
      return false;
    }
    const { sentence, cited, version } = article.dataset;
    try {
      posted.push(await post({ sentence, cited, version, decision, note, by }));
    } catch (error) {
      status.value = `Citation ${article.dataset.number}: not kept, ${error.message}`;
      return false;
    }
    told(article, `${decision}.`);
    return true;
  }

  function undo(article) {
    if ([...histories.get(article), ...about(article)].some((review) => review.by === reviewer())) {
      decide(article, "withdrawn");
    } else {
      status.value = `Citation ${article.dataset.number}: no decision of yours to undo.`;
    }
  }

  function told(article, what) {
    articles.filter((each) => citations.get(each) === citations.get(article)).forEach(show);
    const open = articles.filter((each) => each.dataset.status !== "PASS");
    const done = open.filter((each) => ["accepted", "rejected"].includes(each.dataset.decision)).length;
    status.value = `Citation ${article.dataset.number} ${what} ${done} of ${open.length} decided.`;
  }

  function note(article, open) {
    const field = article.querySelector("footer .note");
    if (field) {
      field.hidden = !open;
      (open ? field.querySelector("textarea") : article).focus();
    }
  }

  function current() {
    return document.activeElement.closest("article.citation");
  }

  function step(by) {
    const seen = articles.filter((article) => !article.hidden);
    const at = seen.indexOf(current() ?? last);
    const next = seen[at < 0 ? (by > 0 ? 0 : seen.length - 1) : Math.min(Math.max(at + by, 0), seen.length - 1)];
    next?.focus();
  }

  const commands = {
    accepted: (article) => decide(article, "accepted"),
    rejected: (article) => decide(article, "rejected"),
    note: (article) => note(article, true),
    cancel: (article) => note(article, false),
    save: async (article) => {
      const field = article.querySelector("textarea");
      const text = field.value;
      field.value = "";
      if (text.trim() && !(await decide(article, "noted", text.trim()))) {
        field.value = text;
      } else {
        note(article, false);
      }
    },
    undo,
    help: () => dialog.showModal(),
    close: () => dialog.close(),
  };
  const keys = { a: "accepted", r: "rejected", n: "note", u: "undo" };

  document.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    const mark = event.target.closest("a.mark");
    if (button?.dataset.do) {
      commands[button.dataset.do](button.closest("article"));
    } else if (button && button.closest("[data-filter]")) {
      button.setAttribute("aria-pressed", String(button.getAttribute("aria-pressed") !== "true"));
      filter();
    } else if (mark) {
      const article = document.getElementById(mark.hash.slice(1));
      if (article.hidden) {
        filters.forEach((each) => each.querySelectorAll("button").forEach((one) => one.setAttribute("aria-pressed", "false")));
        filter();
      }
      article.focus();
    }
  });

  document.addEventListener("keydown", (event) => {
    const typing = event.target.closest("input:not([type=checkbox]), textarea, dialog");
    if (event.key === "Escape" && event.target.closest("footer .note")) {
      note(event.target.closest("article"), false);
    }
    if (event.key === "Enter" && event.target === name) {
      last?.focus();
    }
    if (typing || event.ctrlKey || event.metaKey || event.altKey || !controls.querySelector(".keys").checked) {
      return;
    }
    const article = current();
    if (event.key === "j" || event.key === "k") {
      step(event.key === "j" ? 1 : -1);
    } else if (event.key === "?") {
      dialog.showModal();
    } else if (keys[event.key] && name && article?.dataset.cited) {
      commands[keys[event.key]](article);
    } else {
      return;
    }
    event.preventDefault();
  });

  // the sentence of the citation that has the focus, in the pane of the report
  document.addEventListener("focusin", (event) => {
    const article = event.target.closest("article.citation");
    last = article ?? last;
    const mark = article && document.getElementById(`mark-${article.dataset.number}`);
    if (mark) {
      document.querySelectorAll(".sentence.current").forEach((each) => each.classList.remove("current"));
      const pane = mark.closest(".page");
      const sentence = mark.closest(".sentence");
      sentence.classList.add("current");
      if (pane.scrollHeight > pane.clientHeight) {
        pane.scrollTop += sentence.getBoundingClientRect().top - pane.getBoundingClientRect().top - pane.clientHeight / 3;
      }
    }
  });

  if (name) {
    document.querySelectorAll(".actions").forEach((actions) => {
      actions.hidden = false;
    });
    articles.forEach(show);
  }
  controls.hidden = false;
})();
