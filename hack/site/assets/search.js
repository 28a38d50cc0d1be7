// SPDX-License-Identifier: Apache-2.0

// Shows the pages that have all words of the search: those for users before those for contributors, and among them those with
// all words in the title first. A link such as index.html?q=spot+price opens a page with a search.
const input = document.getElementById("search");
const list = document.getElementById("found");
const search = () => {
  const words = input.value.toLowerCase().split(/\s+/).filter((word) => word.length > 1);
  const has = (text) => words.every((word) => text.toLowerCase().includes(word));
  const found = words.length === 0 ? [] : pages.filter((page) => has(page.title + " " + page.text));
  const rank = (page) => 2 * /^(design|contributing)\//.test(page.link) - has(page.title);
  found.sort((a, b) => rank(a) - rank(b));
  list.replaceChildren(...found.slice(0, 15).map((page) => {
    const link = document.createElement("a");
    link.href = document.body.dataset.root + page.link;
    link.textContent = page.title;
    const entry = document.createElement("li");
    entry.append(link);
    return entry;
  }));
};
input.addEventListener("input", search);
input.value = new URLSearchParams(location.search).get("q") || "";
search();
