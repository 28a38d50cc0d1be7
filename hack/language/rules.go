// SPDX-License-Identifier: Apache-2.0

package main

import "regexp"

// rule is a phrase and what to write instead.
type rule struct {
	// find matches the phrase, in either case. Words are separated by one space.
	find *regexp.Regexp

	// except matches a good phrase that begins where find matches; nil if there is none.
	// It replaces the lookahead that package regexp lacks.
	except *regexp.Regexp

	// write is what to write instead.
	write string
}

func phrase(find, write string) rule {
	return rule{find: regexp.MustCompile(`(?i)` + find), write: write}
}

// unless returns the rule with an exception.
func (r rule) unless(except string) rule {
	r.except = regexp.MustCompile(`^(?:` + except + `)`)
	return r
}

// notBefore returns the rule with an exception: the phrase is good before some words.
func (r rule) notBefore(words string) rule {
	return r.unless(`(?:` + r.find.String() + `) (?:` + words + `)\b`)
}

// matches returns where the phrase is in a text.
func (r rule) matches(text string) [][]int {
	var all [][]int
	for _, at := range r.find.FindAllStringIndex(text, -1) {
		if r.except == nil || !r.except.MatchString(text[at[0]:]) {
			all = append(all, at)
		}
	}
	return all
}

// Words in the rules below.
const (
	// object is one that the operator or Cluster API creates.
	object = `\b(MachineDeployment|MachinePool|MachineSet|Machine|NodeClaim|claim|NodePool|Node|Pod|template|instance|pool|object|copie|copy)s?`
	// be is a form of "to be".
	be = `\b(is|are|was|were|be|been|being)`
	// aMachine is the object of a verb.
	aMachine = ` ((a|an|the|its|their|all|each|this|that|these|those) )?Machines?\b`
	// end is where a clause ends.
	end = `([.,;:)!?]+(\s|$)|$)`
)

// The phrases. A phrase belongs here if nearly every use of it is wrong: rather miss a bad
// sentence than find a good one.
var rules = []rule{
	// Verbs of speech.
	phrase(`\b(tells?|telling|told) whether\b`, `"reports whether", or "determine whether"`),
	phrase(`\b(tells?|telling) (that|what|which|why|how|when|where|who|of)\b`, `"reports", "returns", "shows" or "describes"`),
	phrase(be+` told\b`, `"is recorded", "is reported", or who configures it`).notBefore(`to`),
	phrase(`\b(says?|saying) (that|whether|which|in words)\b`, `"reports", "returns", "shows that" or "describes"`),
	phrase(`^ ?\w+ says? (what|why|how|when|where|who)\b`, `"returns" or "describes"`),
	phrase(`\bask(s|ed|ing)? (the|an|its) API servers?\b`, `"reads from the API server"`),
	phrase(be+` asked whether\b`, `who checks, and with which request`),
	phrase(`\b(do|does|did) not mind\b`, `"ignores", "accepts", or "is not affected by"`),

	// Reasons.
	phrase(`\bfor want of\b`, `"because there is no"`),
	phrase(`, for (it|they|there|this|that|these|those|nobody|nothing) (is|are|was|were|has|have|had|does|do|did|can|cannot|could|would|will|may|must)\b`, `"because"`),
	phrase(`\b(nothing|something) (is|was) gained\b`, `"does not help", as in "waiting does not help"`),

	// The life of a Machine and of other objects.
	phrase(`\bcho(ose|oses|osing|se|sen)( \S+){0,3} to go\b`, `"marked for deletion"`),
	phrase(`\blet(s|ting)?( \S+){0,2} go\b`, `"deletable", or "removes its hooks and deletes it"`).
		unless(`(?i:let(s|ting)?)( \S+){0,2} (Go|go (build|run|test|vet|tool|mod|list|on|through|back))\b`),
	phrase(`\b(hold|holds|held|holding)( (it|them))? up\b`, `"blocks", "blocked by a hook"`).notBefore(`to`),
	phrase(`\bfree(s|d|ing)?`+aMachine, `"removes the hooks of the Machine"`).unless(`(?i:free Machines)`),
	phrase(`\breleas(e|es|ed|ing)`+aMachine, `"unlinks the Machine"`),
	phrase(be+` gone\b`, `"is deleted", or "no longer exists"`),
	phrase(object+` (is|are|was|were) going\b`, `"is being deleted"`).notBefore(`to`),
	phrase(`(`+object+`|\bone)( that)? (goes|go)`+end, `"is deleted"`),
	phrase(object+` (is|are|was|were|has been|have been|being|can be|could be) made\b`, `"is created", or "is generated" from a template`),
	phrase(`\bmak(e|es|ing) (another|new|more) (machine|`+object+`)`, `"creates"`),
	phrase(`\bdisown(s|ed|ing)?\b`, `"ends the adoption"`),
	phrase(`\b(its |their )?own replicas\b`, `"unmanaged replicas"`).unless(`(?i:its|their)`),

	// Launches and offerings.
	phrase(`\b(not|cannot|never|can|to) be had\b`, `"could not be launched"`),
	phrase(`\b(left|leaves?|leaving)( \S+)? alone (for|until)\b`, `"is unavailable until 14:05"`),
	phrase(`\bmov(e|es|ed|ing)\b( \S+){0,3} to (another|the next|a different|the) offering\b`, `"relaunched with another offering"`),
	phrase(`\bmoved to offering\b`, `"relaunched with offering"`),
	phrase(`\b(stands?|stood|standing) still\b|\bat a standstill\b`, `"is stalled"`),
	phrase(be+` halted\b`, `"is stalled"`),
	phrase(`\blet(s|ting)?( \S+)? caches? settle\b`, `"waits for the settle time of the cache"`),

	// Time and repetition.
	phrase(`\banew\b`, `"again", as in "created again"`),
	phrase(`\bonce more\b`, `"again"`).notBefore(`than|and more|[A-Z]\w+s|[a-z]{4,}s`),
	phrase(`\bagain and again\b`, `"repeatedly"`),
	phrase(`\bfor a while\b`, `how long: "for 5 minutes"`),
	phrase(`\b(a moment|moments|a while|long|some time) ago\b`, `how long: "within the last 10 s", "more than 30 min ago"`),
	phrase(` soon[.,;:)]`, `how long: "within 10 s"`),
	phrase(`\btimes? ahead\b|\b(lies?|lay|lying) ahead\b`, `"timestamps in the future"`),

	// Persons and other controllers.
	phrase(`\bwhoever\b`, `"the user", or the name of the controller`),
	phrase(`\bsomebody\b|\b(someone|anyone|anybody|nobody|no one) else\b`, `"the user", "another controller" or "another field manager"`),
	phrase(`\bwhat others (set|have set|had set|write|wrote)\b`, `"fields of other field managers"`),

	// The rest.
	phrase(`\bmend(s|ed|ing)?\b`, `"fix" or "correct"`),
	phrase(`\bwhat (is|are|was|were) to be\b`, `the full verb: "should be"`),
	phrase(`\b(has|have|had) not( (a|an|the|any|its|their|is|are)\b|[.,;:)])`, `"lacks"`),
	phrase(`\bnone of (that|this|its|the) name\b`, `"no X named Y exists"`),
}
