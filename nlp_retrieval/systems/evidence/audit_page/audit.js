// Filters, keys and decisions. Without it everything can be read. Decisions are posted to the service that the page came from;
// those in a page that was opened from a file stay in this browser until they are exported.
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
  const main = document.querySelector("main");
  const posts = "posts" in main.dataset;
  const key = `nlp-retrieval audit ${main.dataset.audit}`;
  const made = load();

  function load() {
    try {
      const kept = JSON.parse(localStorage.getItem(key)) || {};
      return { by: String(kept.by || ""), reviews: Array.isArray(kept.reviews) && !posts ? kept.reviews : [] };
    } catch {
      return { by: "", reviews: [] };
    }
  }

  function keep() {
    try {
      localStorage.setItem(key, JSON.stringify(made));
      return "";
    } catch {
      return posts ? "" : " This browser does not keep it: export your reviews before you close the page.";
    }
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

  function about(article) {
    return made.reviews.filter(
      (review) => ["sentence", "cited", "version"].every((field) => review[field] === article.dataset[field]),
    );
  }

  function show(article) {
    const line = article.querySelector(".decision");
    if (!line) {
      return;
    }
    line.dataset.kept ??= line.textContent;
    article.dataset.kept ??= article.dataset.decision;
    const own = about(article);
    const said = own.map((review) => `${review.decision} by ${review.by}${review.note ? `: \u201c${review.note}\u201d` : ""}`);
    const last = own.filter((review) => review.decision !== "noted").at(-1);
    article.dataset.decision = last ? (last.decision === "withdrawn" ? "" : last.decision) : article.dataset.kept;
    line.firstElementChild.textContent = [...said.reverse().map((each) => (posts ? each : `${each} (not yet in the project)`)), line.dataset.kept]
      .filter(Boolean)
      .join("; ");
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
  }

  async function decide(article, decision, note = "") {
    const by = name.value.trim();
    if (!by) {
      status.value = "Write your name first.";
      name.focus();
      return;
    }
    const { sentence, cited, version } = article.dataset;
    const review = { sentence, cited, version, decision, note, by };
    try {
      await (posts && post(review));
    } catch (error) {
      status.value = `Citation ${article.dataset.number}: not kept, ${error.message}`;
      return;
    }
    made.by = by;
    made.reviews.push({ ...review, date: new Date().toISOString() });
    told(article, `${decision}.`);
  }

  function undo(article) {
    const own = about(article);
    if (own.length && !posts) {
      made.reviews.splice(made.reviews.lastIndexOf(own.at(-1)), 1);
      told(article, "last decision undone.");
    } else if (own.length || article.dataset.kept) {
      decide(article, "withdrawn");
    }
  }

  function told(article, what) {
    const unkept = keep();
    articles.forEach(show);
    const open = articles.filter((each) => each.dataset.status !== "PASS");
    const done = open.filter((each) => ["accepted", "rejected"].includes(each.dataset.decision)).length;
    status.value = `Citation ${article.dataset.number} ${what} ${done} of ${open.length} decided.${unkept}`;
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
    const at = seen.indexOf(current());
    const next = seen[at < 0 ? (by > 0 ? 0 : seen.length - 1) : Math.min(Math.max(at + by, 0), seen.length - 1)];
    next?.focus();
  }

  function download(text, type, file) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type }));
    link.download = file;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60000);
  }

  function exported() {
    download(JSON.stringify({ format: 1, reviews: made.reviews }, null, 1), "application/json", "reviews.json");
    status.value = `${made.reviews.length} decisions exported.`;
  }

  // a spreadsheet would run a cell that begins like a formula
  function cell(text) {
    const safe = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
    return `"${safe.replaceAll('"', '""')}"`;
  }

  function csv() {
    const text = (article, selector) => article.querySelector(selector)?.textContent.trim() ?? "";
    const columns = {
      number: (article) => article.dataset.number,
      line: (article) => article.dataset.line,
      mark: (article) => text(article, "h3 .as").slice(1, -1),
      status: (article) => article.dataset.status,
      reason: (article) => article.dataset.reason,
      claim: (article) => text(article, ".claim blockquote"),
      detail: (article) => text(article, ".detail"),
      support: (article) => text(article, "data"),
      url: (article) => article.dataset.url,
      title: (article) => text(article, ".source strong"),
      passage: (article) => text(article, ".passage mark"),
      decision: (article) => article.dataset.decision ?? "",
      review: (article) => text(article, ".decision"),
    };
    const rows = articles.map((article) => Object.values(columns).map((value) => cell(value(article))).join(","));
    download(`\ufeff${[Object.keys(columns).join(","), ...rows].join("\r\n")}\r\n`, "text/csv", "audit.csv");
  }

  const commands = {
    accepted: (article) => decide(article, "accepted"),
    rejected: (article) => decide(article, "rejected"),
    note: (article) => note(article, true),
    cancel: (article) => note(article, false),
    save: (article) => {
      const field = article.querySelector("textarea");
      if (field.value.trim()) {
        decide(article, "noted", field.value.trim());
        field.value = "";
      }
      note(article, false);
    },
    undo,
    export: exported,
    csv,
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
    if (typing || event.ctrlKey || event.metaKey || event.altKey || !controls.querySelector(".keys").checked) {
      return;
    }
    const article = current();
    if (event.key === "j" || event.key === "k") {
      step(event.key === "j" ? 1 : -1);
    } else if (event.key === "?") {
      dialog.showModal();
    } else if (keys[event.key] && article?.dataset.cited) {
      commands[keys[event.key]](article);
    } else {
      return;
    }
    event.preventDefault();
  });

  // the sentence of the citation that has the focus, in the pane of the report
  document.addEventListener("focusin", (event) => {
    const article = event.target.closest("article.citation");
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
    name.value = made.by;
    document.querySelectorAll(".actions").forEach((actions) => {
      actions.hidden = false;
    });
    articles.forEach(show);
  }
  controls.hidden = false;
})();
