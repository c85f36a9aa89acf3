// The page of a tree: keys in the list, the selected node, versions, and live updates.

const by = (id) => document.getElementById(id);
const view = by("view");

let asked = 0;

/** The URL of a part of the shown tree. */
function address(path, node) {
  const { version, member } = view.querySelector(".tree-columns").dataset;
  return `${view.dataset.base}${path}version=${version}&member=${member}&node=${node}`;
}

function items() {
  return [...view.querySelectorAll("[role=treeitem]")];
}

function level(item) {
  return Number(item.dataset.depth);
}

/** The search text as a URL parameter. */
function typed() {
  return `find=${encodeURIComponent(view.querySelector("[name=find]").value)}`;
}

/** Hide the descendants of folded nodes. */
function fold(all = items()) {
  let under = Infinity;
  for (const item of all) {
    if (level(item) <= under) under = Infinity;
    item.hidden = under !== Infinity;
    if (under === Infinity && item.getAttribute("aria-expanded") === "false") under = level(item);
  }
}

async function choose(item, focus = true) {
  for (const each of view.querySelectorAll("[role=treeitem][tabindex='0']")) {
    each.tabIndex = -1;
    each.setAttribute("aria-selected", "false");
  }
  item.tabIndex = 0;
  item.setAttribute("aria-selected", "true");
  if (focus) item.focus();
  for (const each of view.querySelectorAll(".box.selected")) each.classList.remove("selected");
  view.querySelector(`.box[data-node="${item.dataset.node}"]`)?.classList.add("selected");
  const mine = ++asked;
  const response = await fetch(address("/node?", item.dataset.node));
  if (mine === asked && response.ok) by("panel").innerHTML = await response.text(); // of our own templates
}

/** Unfold the path to a node of the picture; a node that is not listed yet needs a new view. */
async function reveal(node) {
  const item = by(`n${node}`);
  if (item === null) {
    const mine = ++asked;
    const response = await fetch(address(`?part=1&zoom=${view.querySelector(".tree-columns").dataset.zoom}&${typed()}&`, node));
    if (mine !== asked || !response.ok) return;
    view.innerHTML = await response.text(); // of our own templates
    by(`n${node}`).scrollIntoView({ block: "nearest" });
    return;
  }
  const all = items();
  let depth = level(item);
  for (let k = all.indexOf(item) - 1; k >= 0 && depth > 0; k -= 1) {
    if (level(all[k]) < depth) {
      depth = level(all[k]);
      all[k].setAttribute("aria-expanded", "true");
    }
  }
  fold(all);
  choose(item, false);
}

async function toggle(item) {
  const isOpen = item.getAttribute("aria-expanded");
  if (isOpen === null || item.dataset.more === "asked") return;
  if (item.dataset.more) {
    item.dataset.more = "asked";
    const response = await fetch(address("/children?", item.dataset.node)).catch(() => null);
    item.dataset.more = "yes";
    if (!response?.ok) return;
    item.insertAdjacentHTML("afterend", await response.text()); // of our own templates
    delete item.dataset.more;
  }
  item.setAttribute("aria-expanded", String(isOpen === "false"));
  fold();
}

view.addEventListener("keydown", (event) => {
  const item = event.target.closest("[role=treeitem]");
  if (item === null || event.ctrlKey || event.altKey || event.metaKey) return;
  const shown = items().filter((each) => !each.hidden);
  const at = shown.indexOf(item);
  const isOpen = item.getAttribute("aria-expanded");
  let next = null;
  if (event.key === "ArrowDown") next = shown[at + 1];
  else if (event.key === "ArrowUp") next = shown[at - 1];
  else if (event.key === "Home") next = shown[0];
  else if (event.key === "End") next = shown.at(-1);
  else if (event.key === "ArrowRight" && isOpen === "false") toggle(item);
  else if (event.key === "ArrowRight") next = isOpen === "true" ? shown[at + 1] : null;
  else if (event.key === "ArrowLeft" && isOpen === "true") toggle(item);
  else if (event.key === "ArrowLeft") next = shown.slice(0, at).findLast((each) => level(each) < level(item));
  else if (event.key === "Enter" || event.key === " ") toggle(item);
  else return;
  event.preventDefault();
  if (next) choose(next);
});

/** Draw the subtree of a node, and select the node. */
async function zoom(node) {
  await load(view.querySelector(".tree-columns").dataset.version, node);
  by(`n${node}`)?.scrollIntoView({ block: "nearest" });
}

view.addEventListener("dblclick", (event) => {
  const box = event.target.closest(".box");
  if (box !== null) zoom(box.dataset.node);
});

let finding = 0;
view.addEventListener("input", (event) => {
  if (!event.target.matches("[name=find]")) return;
  clearTimeout(finding);
  finding = setTimeout(find, 150);
});
view.addEventListener("submit", (event) => {
  if (!event.target.matches(".find")) return;
  event.preventDefault();
  find();
});

/** List the nodes that match the typed text, and mark them in the picture. */
async function find() {
  const text = view.querySelector("[name=find]").value;
  const response = await fetch(address(`/find?${typed()}&`, 0));
  if (!response.ok || view.querySelector("[name=find]")?.value !== text) return;
  by("found").innerHTML = await response.text(); // of our own templates
  const found = new Set([...by("found").querySelectorAll("[data-node]")].map((each) => each.dataset.node));
  for (const each of view.querySelectorAll(".box")) each.classList.toggle("found", found.has(each.dataset.node));
}

view.addEventListener("click", (event) => {
  const part = event.target.closest("a[data-zoom]");
  const other = event.target.closest(".way a[data-node], .found a");
  if (part !== null || other !== null) {
    event.preventDefault();
    return part !== null ? zoom(part.dataset.zoom) : reveal(other.dataset.node);
  }
  const box = event.target.closest(".box");
  const item = event.target.closest("[role=treeitem]");
  if (box === null && item === null) return;
  event.preventDefault();
  if (box) return reveal(box.dataset.node);
  if (event.target.closest(".twig")) toggle(item);
  choose(item);
});

// Versions

const slider = by("version");
let newest = Number(slider?.max);

function showVersion(version) {
  by("version-shown").textContent = `${version} of ${newest}`;
}

async function load(version, zoom = 0, node = zoom) {
  const mine = ++asked;
  const { member } = view.querySelector(".tree-columns").dataset;
  const response = await fetch(`${view.dataset.base}?part=1&version=${version}&member=${member}&zoom=${zoom}&node=${node}&${typed()}`);
  if (mine !== asked) return;
  if (!response.ok) {
    by("status").textContent = `Version ${version} cannot be shown: it may have been deleted.`;
    return;
  }
  view.innerHTML = await response.text(); // of our own templates
  by("status").textContent = "";
  for (const link of document.querySelectorAll(".head a[download]")) {
    link.href = link.href.replace(/version=\d+/, `version=${version}`);
  }
}

let timer = 0;
slider?.addEventListener("input", () => {
  setLive(false);
  showVersion(slider.value);
  clearTimeout(timer);
  timer = setTimeout(() => load(slider.value), 120);
});

// Live

const button = by("live");
let live = false;

function setLive(on) {
  live = on;
  button.setAttribute("aria-pressed", String(on));
  button.textContent = on ? "live: on" : "live";
}

if (slider !== null && button !== null) {
  button.hidden = false;
  button.addEventListener("click", () => {
    setLive(!live);
    if (live) follow(newest);
  });
  const events = new EventSource(by("versions").dataset.events);
  events.addEventListener("tree", (event) => {
    const change = JSON.parse(event.data);
    newest = Math.max(newest, change.version);
    slider.max = String(newest);
    slider.min = String(Math.max(1, newest - 999));
    slider.disabled = newest <= 1;
    if (live && change.version !== Number(view.querySelector(".tree-columns").dataset.version)) follow(change.version);
    else showVersion(slider.value);
  });
  addEventListener("pagehide", () => events.close());
  const isNewest = slider.value === slider.max && !location.search.includes("version");
  setLive(isNewest);
}

function follow(version) {
  slider.value = String(version);
  showVersion(version);
  load(version);
}

