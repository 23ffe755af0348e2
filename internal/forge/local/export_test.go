package local

// CheckIssue reads text as the document of issue 1, for the fuzz test.
func CheckIssue(text string) {
	if doc, err := decodeIssue(1, []byte(text)); err == nil && (doc.Issue.Number != 1 || doc.Issue.Title == "") {
		panic("an issue without number or title is accepted")
	}
}

// Quote makes one shell word.
var Quote = quote
