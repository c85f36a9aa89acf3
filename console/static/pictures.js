// Pictures: each has a box of its own shape, and strongly enlarged ones are shown with sharp pixels.

const COARSE = 2;

/** Fit the box to a loaded picture, without empty space. */
export function fit(picture) {
  if (picture.naturalWidth === 0 || picture.classList.contains("fitted")) return;
  picture.style.setProperty("--ratio", picture.naturalWidth / picture.naturalHeight);
  picture.classList.add("fitted");
}

/** Show sharp pixels in a strongly enlarged picture. */
export function sharpen(picture) {
  if (picture.naturalWidth === 0) return;
  fit(picture);
  const scale = Math.min(picture.clientWidth / picture.naturalWidth, picture.clientHeight / picture.naturalHeight);
  picture.classList.toggle("enlarged", scale >= COARSE);
}

/** Sharpen the pictures of a part of the page, now and as they load. */
export function sharpenIn(part) {
  part.addEventListener("load", (event) => event.target.matches("img") && sharpen(event.target), true);
  for (const each of part.querySelectorAll("img")) if (each.complete) sharpen(each);
}
