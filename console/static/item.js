// The item of the query: its pictures, enlarged on request, and its folded values.

import { fit, sharpen, sharpenIn } from "./pictures.js";
import { state } from "./state.js";

let restIsOpen = false; // stays the same from row to row

/** Prepare the item of an article before it is put on the page, since later changes need another layout. */
export function prepareItem(article) {
  for (const each of article.querySelectorAll(".rest")) each.open = restIsOpen;
  for (const each of article.querySelectorAll(".picture.zoomed")) zoom(each);
  for (const each of article.querySelectorAll(".picture img")) fit(each);
}

/** Complete the item of an article after it is put on the page. */
export function openItem(article) {
  article.querySelector(".item").scrollTop = 0;
  for (const each of article.querySelectorAll(".picture img")) sharpen(each);
  keepRowsWhole();
}

/** Shift the values below a picture so that no row of them is cut off at the lower edge. */
function keepRowsWhole() {
  const item = state.current?.querySelector(".item:has(.pictures)") ?? null;
  if (item === null) return;
  item.style.removeProperty("--nudge");
  if (item.scrollHeight <= item.clientHeight) return;
  const edge = item.getBoundingClientRect().bottom;
  const rows = [...item.querySelectorAll(".values-list > div")].map((each) => each.getBoundingClientRect());
  const cut = rows.find((row) => row.top < edge && row.bottom > edge);
  if (cut) item.style.setProperty("--nudge", `${edge - cut.top}px`);
}

/** Show a picture in the whole window, or back in its place. */
export function zoom(figure = state.current.querySelector(".picture")) {
  if (figure === null) return;
  const isZoomed = figure.classList.toggle("zoomed");
  figure.querySelector(".zoom-word").textContent = isZoomed ? "make smaller" : "enlarge";
  sharpen(figure.querySelector("img"));
  figure.scrollLeft = (figure.scrollWidth - figure.clientWidth) / 2; // it may be wider than a phone's screen
}

/** End a zoom; return whether there was one. */
export function unzoom() {
  const zoomed = state.current?.querySelector(".picture.zoomed") ?? null;
  if (zoomed !== null) zoom(zoomed);
  return zoomed !== null;
}

export function watchItem(stage) {
  sharpenIn(stage);
  stage.addEventListener("load", keepRowsWhole, true);
  addEventListener("resize", keepRowsWhole);
  stage.addEventListener("click", (event) => {
    const asked = event.target.closest(".zoom, .picture img");
    if (asked !== null) zoom(asked.closest(".picture"));
  });
  stage.addEventListener(
    "toggle",
    (event) => {
      if (event.target.matches(".rest")) restIsOpen = event.target.open;
    },
    true,
  );
}
