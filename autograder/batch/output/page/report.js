"use strict";
// Everything from students reaches the page as text, never as markup: there is no innerHTML here.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const $ = (id) => document.getElementById(id);
  const CHUNK = 100; // rows that are drawn at once; more come as they are scrolled to
  const MOST_MISTAKES = 8, SLOWEST = 6, LEADERS = 15;
  const STATES = { graded: "graded", unreadable: "not readable", failed: "grading failed", waiting: "not yet graded" };

  function make(tag, given = {}, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(given)) {
      if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
      else if (name === "fraction") element.style.setProperty("--f", value);
      else if (value !== undefined && value !== false) element.setAttribute(name, value);
    }
    element.append(...children.filter((child) => child !== null && child !== undefined));
    return element;
  }
  const number = (value, digits = 1) => String(+value.toFixed(digits));
  // Rounded, but 0 % and 100 % mean none and all.
  const rounded = (share) => (share <= 0 || share >= 100 ? share : Math.min(99, Math.max(1, Math.round(share))));
  const percent = (part, whole) => (whole ? `${rounded((100 * part) / whole)} %` : "-");
  const plural = (count, what) => `${count} ${what}${count === 1 ? "" : "s"}`;
  const seconds = (value) => (value < 100 ? `${number(value)} s` : `${number(value / 60)} min`);
  const bar = (fraction) => make("span", { class: "bar", "aria-hidden": "true" }, make("i", { fraction }));

  // What each way of ending earns in each exercise, worked out once for all who share it.
  const place = new Map(data.exercises.map((exercise, index) => [exercise.number, index]));
  const earned = data.endings.map((ending) => {
    const points = data.exercises.map(() => 0);
    for (const [test, score] of ending) {
      points[place.get(data.tests[test].exercise)] += score === undefined ? data.tests[test].points : score;
    }
    return points;
  });
  const maximum = data.summary.maximum;
  const rows = data.rows.map((row, index) => {
    const names = row.people.map(([name]) => name).filter(Boolean);
    const shown = names.join(", ") || row.id;
    const words = [row.id, STATES[row.status], row.older ? "older result" : "", ...row.people.flat()].join("\n").toLowerCase();
    return { ...row, index, shown, words, sid: row.people.map(([, sid]) => sid).filter(Boolean).join(", "),
             exercises: row.ending === undefined ? null : earned[row.ending] };
  });
  const byId = new Map(rows.map((row) => [row.id, row]));
  const hints = new Set(data.mistakes.map((mistake) => data.hint_prefix + mistake.hint));
  const link = (row) => make("a", { href: `#student=${encodeURIComponent(row.id)}` }, row.shown);

  // The overview.

  function drawLead() {
    const { submissions, students, graded, seconds: all } = data.summary;
    const parts = [`${plural(submissions, "submission")} by ${plural(students, "student")}`];
    const missing = submissions - graded;
    parts.push(missing ? `${graded} graded, ${missing} without a grade` : "all graded");
    if (data.anonymous) parts.push("names are hidden");
    $("lead").textContent = `${parts.join("; ")}. ${seconds(all)} of grading.`;
    data.answers.forEach((name, place) => {
      const page = make("a", { href: `answers/${name}.html` }, name);
      $("lead").append(place ? ", " : " Written in the lab: ", page);
    });
    for (const note of data.notes) $("notes").append(make("li", {}, note));
    $("notes").hidden = !data.notes.length;
  }

  function drawFigures() {
    const scored = rows.filter((row) => row.score !== null);
    const of = (value) => (value === null ? ["-"] : [number(value), make("small", {}, ` of ${number(maximum)}`)]);
    const figures = [
      ["median", ...of(data.summary.median)],
      ["mean", ...of(data.summary.mean)],
      ["all points", String(scored.filter((row) => row.score === maximum).length)],
      ["no points", String(scored.filter((row) => row.score === 0).length)],
      ["not readable", String(rows.filter((row) => row.status === "unreadable").length)],
      ["without a grade", String(rows.length - scored.length)],
    ];
    for (const [name, ...value] of figures) {
      $("figures").append(make("div", {}, make("dt", {}, name), make("dd", {}, ...value)));
    }
  }

  function drawHistogram() {
    const step = maximum / 10;
    const bins = [{ label: "0", what: "no points", has: (score) => score === 0 }];
    for (let low = 0; low < 10; low++) {
      const from = number(low * step), to = number((low + 1) * step);
      bins.push({
        label: low ? from : ">0",
        what: low ? `${from} to below ${to}` : `above 0, below ${to}`,
        has: (score) => score > 0 && score >= low * step && score < (low + 1) * step,
      });
    }
    bins.push({ label: number(maximum), what: "all points", has: (score) => score === maximum });
    for (const bin of bins) {
      bin.count = rows.filter((row) => row.score !== null && bin.has(row.score)).length;
    }
    const most = Math.max(1, ...bins.map((bin) => bin.count));
    for (const bin of bins) {
      const column = make("i");
      column.style.height = `${(82 * bin.count) / most}%`;
      const choice = { what: `score: ${bin.what}`, has: (row) => row.score !== null && bin.has(row.score) };
      $("histogram").append(
        make("button", { type: "button", "aria-pressed": "false", title: bin.what,
                         "aria-label": `${bin.what}: ${plural(bin.count, "submission")}`,
                         onclick: (event) => choose(choice, event.currentTarget) },
             bin.count ? String(bin.count) : "", column, make("b", {}, bin.label)),
      );
    }
  }

  function drawExercises() {
    const graded = rows.filter((row) => row.exercises);
    data.exercises.forEach((exercise, index) => {
      const points = graded.reduce((sum, row) => sum + row.exercises[index], 0);
      const whole = graded.length * exercise.points;
      const tests = data.tests.filter((test) => test.exercise === exercise.number).map((test) => {
        const ran = test.passed + test.failed;
        const tags = [];
        if (test.visibility !== "visible") tags.push(make("span", { class: "tag" }, "hidden"));
        if (test.notRun) tags.push(make("span", { class: "tag" }, `not run: ${test.notRun}`));
        if (test.replaced) {
          tags.push(make("span", { class: "tag" }, `with our functions: ${test.replaced}`));
        }
        return make("li", { title: test.title },
                    make("span", {}, test.name, " ", ...tags),
                    bar(ran ? test.passed / ran : 0), make("b", {}, percent(test.passed, ran)));
      });
      $("exercises").append(
        make("details", {},
             make("summary", {}, make("span", {}, exercise.number),
                  make("span", { class: "name" }, exercise.about),
                  bar(whole ? points / whole : 0), make("b", {}, percent(points, whole))),
             make("ul", { class: "tests" }, ...tests)),
      );
    });
  }

  function drawMistake(mistake) {
    const who = new Set(mistake.rows);
    const choice = { what: mistake.hint, has: (row) => who.has(row.index) };
    const where = `exercise${mistake.exercises.length > 1 ? "s" : ""} ${mistake.exercises.join(", ")}`;
    return make("li", {}, make("button", { type: "button", "aria-pressed": "false",
                                           onclick: (event) => choose(choice, event.currentTarget) },
                               make("b", { title: "submissions" }, String(who.size)),
                               make("span", {}, mistake.hint, " ", make("small", {}, where))));
  }

  function drawMistakes() {
    $("mistakes").append(...data.mistakes.slice(0, MOST_MISTAKES).map(drawMistake));
    if (!data.mistakes.length) $("mistakes").append(make("li", { class: "soft" }, "No known mistake."));
    const rest = data.mistakes.slice(MOST_MISTAKES);
    if (!rest.length) return;
    const list = make("ol", { class: "mistakes" });
    const more = make("details", { class: "more", ontoggle: () => list.children.length || list.append(...rest.map(drawMistake)) },
                      make("summary", {}, `${rest.length} more`), list);
    $("mistakes").after(more);
  }

  function drawTrouble() {
    for (const status of ["failed", "unreadable"]) {
      const found = rows.filter((row) => row.status === status);
      if (!found.length) continue;
      $("trouble").append(
        make("h3", {}, status === "failed" ? "Grading failed: no score, regrade" : "Not readable: graded as an empty submission"),
        make("ul", { class: "list" }, ...found.map((row) => make("li", { class: "said" }, link(row), make("span", {}, row.why)))),
      );
    }
    const older = rows.filter((row) => row.older);
    if (older.length) {
      $("trouble").append(make("h3", {}, "Previous results: the last run gave no new one"),
        make("ul", { class: "list" }, ...older.map((row) => make("li", { class: "said" }, link(row), make("span", {}, row.older)))));
    }
    const renamed = rows.filter((row) => row.renamed);
    if (renamed.length) {
      $("trouble").append(make("h3", {}, "Taken under another name"),
        make("ul", { class: "list" }, ...renamed.map((row) => make("li", { class: "said" }, link(row), make("span", {}, row.renamed)))));
    }
    const slow = rows.filter((row) => row.seconds > 0).sort((a, b) => b.seconds - a.seconds).slice(0, SLOWEST);
    $("trouble").append(make("h3", {}, "Slowest"),
      make("ul", { class: "list" }, ...slow.map((row) => make("li", {}, link(row), make("span", {}, seconds(row.seconds))))));
  }

  function drawBoards() {
    $("boards-card").hidden = !data.boards.length;
    for (const board of data.boards) {
      $("boards").append(make("h3", {}, board.name), make("ol", { class: "list ranked" },
        ...board.rows.slice(0, LEADERS).map(([value, index]) => make("li", {}, link(rows[index]), make("span", {}, number(value, 3))))));
    }
  }

  // The table.

  const columns = [
    { key: "name", title: data.anonymous ? "submission" : "student", value: (row) => row.shown, first: 1 },
    ...(data.anonymous ? [] : [{ key: "sid", title: "number", value: (row) => row.sid, first: 1 }]),
    { key: "score", title: "score", value: (row) => row.score, first: -1, n: true },
    ...data.exercises.map((exercise, index) => ({
      key: exercise.number, title: exercise.number, first: -1, x: true, what: exercise.about,
      value: (row) => (row.exercises ? row.exercises[index] : null),
    })),
    { key: "time", title: "time", value: (row) => row.seconds, first: -1, n: true },
    { key: "status", title: "status", value: (row) => STATES[row.status], first: 1 },
  ];
  const view = { query: "", status: "", choice: null, key: "name", direction: 1, shown: [], drawn: 0, open: null };
  const collator = new Intl.Collator(undefined, { numeric: true, sensitivity: "base" });

  function order(left, right) {
    const { value } = columns.find((column) => column.key === view.key);
    const [a, b] = [value(left), value(right)];
    const missing = (entry) => entry === null || entry === "";
    if (missing(a) || missing(b)) return missing(a) - missing(b); // last, whichever way it is sorted
    return view.direction * (typeof a === "number" ? a - b : collator.compare(a, b));
  }

  function endingsThatSay(query) {
    const texts = new Set();
    data.texts.forEach((text, index) => text.toLowerCase().includes(query) && texts.add(index));
    const says = (entry) => entry[3] !== undefined && texts.has(entry[3]);
    return new Set(data.endings.flatMap((ending, index) => (ending.some(says) ? [index] : [])));
  }

  function update() {
    const query = view.query.trim().toLowerCase();
    const said = query.length > 2 ? endingsThatSay(query) : new Set();
    view.shown = rows.filter((row) =>
      (!query || row.words.includes(query) || said.has(row.ending)) &&
      (!view.status || row.status === view.status) && (!view.choice || view.choice.has(row)));
    view.shown.sort((left, right) => order(left, right) || left.index - right.index);
    $("rows").replaceChildren();
    view.drawn = 0;
    drawMore();
    $("count").textContent = `${view.shown.length} of ${rows.length}`;
    $("nothing").hidden = view.shown.length > 0;
    $("clear").hidden = !view.choice;
    $("clear").textContent = view.choice ? `✕ ${view.choice.what}` : "";
    for (const head of $("heads").children) {
      const sorted = head.dataset.key === view.key;
      head.setAttribute("aria-sort", sorted ? (view.direction > 0 ? "ascending" : "descending") : "none");
    }
    $("sort").value = view.key;
  }

  function drawMore() {
    const next = view.shown.slice(view.drawn, view.drawn + CHUNK);
    view.drawn += next.length;
    $("rows").append(...next.map(drawRow));
  }

  function drawCell(row, exercise, index) {
    const points = row.exercises ? row.exercises[index] : null;
    const kind = points === null ? "" : points === exercise.points ? "all" : points === 0 ? "none" : "";
    const cell = points === null ? "" : make("span", { class: `cell ${kind}` }, number(points));
    return make("td", { class: "x", "data-label": exercise.number }, cell);
  }

  function drawRow(row) {
    const tags = row.members > 1 ? [" ", make("span", { class: "tag" }, `group of ${row.members}`)] : [];
    if (row.older) tags.push(" ", make("span", { class: "tag" }, "older result"));
    return make("tr", { "data-id": row.id },
      make("td", { class: "who" }, link(row), ...tags),
      data.anonymous ? null : make("td", { class: "sid" }, row.sid),
      make("td", { class: "score n" }, row.score === null ? "-" : number(row.score)),
      ...data.exercises.map((exercise, index) => drawCell(row, exercise, index)),
      make("td", { class: "time n" }, row.seconds ? seconds(row.seconds) : ""),
      make("td", { class: "state-cell" }, make("span", { class: `state ${row.status}` }, STATES[row.status])));
  }

  function drawHeads() {
    for (const column of columns) {
      $("heads").append(make("th", { scope: "col", class: column.n ? "n" : column.x ? "x" : "", "data-key": column.key, title: column.what },
        make("button", { type: "button", onclick: () => sortBy(column.key) }, column.title)));
      $("sort").append(make("option", { value: column.key }, column.x ? `exercise ${column.title}` : column.title));
    }
    for (const [status, words] of Object.entries(STATES)) {
      const count = rows.filter((row) => row.status === status).length;
      if (count) $("status").append(make("option", { value: status }, `${words} (${count})`));
    }
  }

  function sortBy(key) {
    const { first } = columns.find((column) => column.key === key);
    view.direction = view.key === key ? -view.direction : first;
    view.key = key;
    update();
  }

  function choose(choice, button) {
    const again = button && button.getAttribute("aria-pressed") === "true";
    for (const other of document.querySelectorAll("[aria-pressed=true]")) other.setAttribute("aria-pressed", "false");
    if (button && !again) button.setAttribute("aria-pressed", "true");
    view.choice = again ? null : choice;
    update();
    if (view.choice) $("submissions").scrollIntoView();
  }

  // One student's result, as the student sees it.

  let published = true, onlyFailed = false;

  function drawStudent(row) {
    const at = view.shown.indexOf(row);
    const step = (by, words) => {
      const other = at < 0 ? undefined : view.shown[at + by];
      return make("button", { type: "button", disabled: other ? undefined : "", title: words, "aria-label": words,
                              onclick: () => open(other) }, by < 0 ? "←" : "→");
    };
    const parts = row.older ? [make("p", { class: "said" }, row.older)] : [];
    if (row.ending === undefined) {
      parts.push(make("p", { class: "said" }, row.why || "This submission is not graded yet."));
    } else {
      parts.push(seenBy(), ...drawResult(row));
    }
    $("student").replaceChildren(
      make("div", { class: "top" }, make("h2", { id: "student-title", tabindex: "-1" }, row.shown), step(-1, "Previous student"), step(1, "Next student"),
           make("button", { type: "button", onclick: () => $("student").close() }, "Close")),
      make("div", { class: "body" }, drawFacts(row), ...parts));
    $("student").scrollTop = 0;
  }

  function drawFacts(row) {
    const points = row.score === null ? "no score" : `${number(row.score)} of ${number(maximum)}`;
    const people = row.people.map(([name, sid, email]) => make("span", {}, [row.people.length > 1 ? name : "", sid, email].filter(Boolean).join(" · ")));
    return make("p", { class: "facts" }, make("strong", {}, points), ...people,
                make("span", { class: `state ${row.status}` }, STATES[row.status]),
                make("span", {}, row.id === row.shown ? "" : row.id), make("span", {}, seconds(row.seconds)));
  }

  function seenBy() {
    const select = make("select", { onchange: () => { published = select.value === "after"; drawStudent(view.open); } },
      make("option", { value: "after" }, "once grades are published"), make("option", { value: "now" }, "before that"));
    select.value = published ? "after" : "now";
    const box = make("input", { type: "checkbox", onchange: () => { onlyFailed = box.checked; drawStudent(view.open); } });
    box.checked = onlyFailed;
    return make("p", { class: "soft seen" }, make("label", {}, "Student's view ", select), make("label", {}, box, " only failed tests"));
  }

  function drawResult(row) {
    const parts = [];
    if (data.texts[row.said]) parts.push(make("pre", { class: "said" }, data.texts[row.said]));
    for (const exercise of data.exercises) {
      let points = 0, whole = 0;
      const tests = [];
      for (const [index, score, state, text] of data.endings[row.ending]) {
        const test = data.tests[index];
        if (test.exercise !== exercise.number || (!published && test.visibility !== "visible")) continue;
        const got = score === undefined ? test.points : score;
        points += got;
        whole += test.points;
        if (!onlyFailed || got < test.points) tests.push(drawTest(test, got, state === undefined ? 1 : state, text));
      }
      if (!tests.length) continue;
      parts.push(make("h3", {}, make("span", {}, exercise.number), make("span", {}, exercise.about),
                      make("span", {}, `${number(points)} / ${number(whole)}`)), ...tests);
    }
    return parts;
  }

  function drawTest(test, points, state, text) {
    const said = text === undefined || text === null ? "" : data.texts[text];
    const own = said.indexOf(data.printed); // from there on, student code speaks
    const lines = (own < 0 ? said : said.slice(0, own)).split("\n");
    const found = lines.filter((line) => hints.has(line));
    const rest = (lines.filter((line) => !hints.has(line)).join("\n") + (own < 0 ? "" : said.slice(own))).trim();
    const word = { 1: "passed", 0: "failed", "-1": "not run" }[state];
    return make("article", { class: `test ${state === 1 ? "passed" : state === 0 ? "failed" : "skipped"}` },
      make("h4", {}, make("span", {}, test.name), test.visibility === "visible" ? null : make("span", { class: "tag" }, "hidden test"),
           make("span", {}, `${word}, ${number(points)} / ${number(test.points)}`)),
      make("p", {}, test.title),
      rest ? make("pre", {}, rest) : null,
      ...found.map((hint) => make("p", { class: "hint" }, hint)));
  }

  // At once, and not only when the address has changed: keys may come faster.
  function open(row) {
    show(row);
    location.hash = `student=${encodeURIComponent(row.id)}`;
  }

  function show(row) {
    view.open = row;
    drawStudent(row);
    if (!$("student").open) $("student").showModal();
    $("student-title").focus();
  }

  function followHash() {
    const wanted = location.hash.startsWith("#student=") ? byId.get(decodeURIComponent(location.hash.slice(9))) : undefined;
    if (!wanted) {
      if ($("student").open) $("student").close();
      return;
    }
    if (wanted !== view.open || !$("student").open) show(wanted);
  }

  function closed() {
    if (location.hash.startsWith("#student=")) history.replaceState(null, "", "#submissions");
    const at = view.shown.indexOf(view.open);
    while (at >= view.drawn) drawMore();
    if (at >= 0) $("rows").children[at].querySelector("a").focus();
  }

  // The keyboard.

  function move(by) {
    const links = [...$("rows").querySelectorAll("td.who a")];
    const at = links.indexOf(document.activeElement);
    if (at + by >= links.length) { drawMore(); links.push(...[...$("rows").querySelectorAll("td.who a")].slice(links.length)); }
    const next = links[at < 0 ? 0 : Math.max(0, Math.min(links.length - 1, at + by))];
    if (next) { next.focus(); next.closest("tr").scrollIntoView({ block: "nearest" }); }
  }

  function pressed(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if ($("student").open) {
      const at = view.shown.indexOf(view.open);
      const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (by && event.target.tagName !== "SELECT" && at >= 0 && view.shown[at + by]) open(view.shown[at + by]);
      return;
    }
    const typing = ["INPUT", "SELECT"].includes(event.target.tagName);
    if (event.key === "Escape" && event.target === $("filter")) { $("filter").value = view.query = ""; update(); }
    if (event.key === "Enter" && event.target === $("filter")) move(1);
    if (typing) return;
    const actions = { "/": () => $("filter").focus(), j: () => move(1), k: () => move(-1) };
    if ($("rows").contains(document.activeElement)) Object.assign(actions, { ArrowDown: actions.j, ArrowUp: actions.k });
    if (actions[event.key]) { event.preventDefault(); actions[event.key](); }
  }

  drawLead();
  drawFigures();
  drawHistogram();
  drawExercises();
  drawMistakes();
  drawTrouble();
  drawBoards();
  drawHeads();
  update();
  $("filter").addEventListener("input", (event) => { view.query = event.target.value; update(); });
  $("status").addEventListener("change", (event) => { view.status = event.target.value; update(); });
  $("sort").addEventListener("change", (event) => sortBy(event.target.value));
  $("clear").addEventListener("click", () => choose(null, null));
  $("rows").addEventListener("click", (event) => {
    const row = event.target.closest("tr");
    if (row && !event.target.closest("a") && !String(getSelection())) open(byId.get(row.dataset.id));
  });
  $("student").addEventListener("close", closed);
  $("student").addEventListener("click", (event) => { if (event.target === $("student")) $("student").close(); });
  document.addEventListener("keydown", pressed);
  addEventListener("hashchange", followHash);
  new IntersectionObserver((seen) => { if (seen.some((entry) => entry.isIntersecting)) drawMore(); }, { rootMargin: "800px" }).observe($("more"));
  followHash();
})();
