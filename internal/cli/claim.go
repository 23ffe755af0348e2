package cli

import (
	"context"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"interlock/internal/claim"
	"interlock/internal/git"
	"interlock/internal/text"
	"interlock/internal/view"
)

func (a *app) claimCommand() *cobra.Command {
	return a.group(cobra.Command{
		Use:     "claim",
		Short:   "look at claims, and break one whose holder is gone for good",
		Example: "  interlock claim show --all\n  interlock claim show 7",
	}, a.claimShow(), a.claimBreak())
}

// keeper opens what this state directory knows of a repository's claims.
func (a *app) keeper(ctx context.Context, repo string) (k *claim.Keeper, done func(), err error) {
	e, done, err := a.engine(ctx, repo)
	if err != nil {
		return nil, nil, err
	}
	return e.Claims(), done, nil
}

func (a *app) claimShow() *cobra.Command {
	var repo string
	var all bool
	c := a.command(cobra.Command{
		Use:   "show ISSUE | --all",
		Short: "show who holds an issue, and since when that has not moved",
		Long: `show reads claims from the forge: who holds which issue, by which installation, in which generation.
A claim that is held by another installation is watched from the first look on. A living holder
moves it every 4 minutes; one that was seen unmoved for 16 minutes is taken over by the next run.`,
		Example: "  interlock claim show 7\n  interlock claim show --all --json",
		Args:    atMost(1),
	}, func(ctx context.Context, args []string) error {
		if all == (len(args) == 1) {
			return &usageError{"name one issue, or --all", "interlock claim show --all"}
		}
		if all {
			return a.showClaims(ctx, repo)
		}
		n, err := number("issue", args[0])
		if err != nil {
			return err
		}
		return a.showClaim(ctx, repo, n)
	})
	repoFlag(c, &repo)
	c.Flags().BoolVar(&all, "all", false, "all issues that have a claim")
	a.jsonFlag(c, "print the claim as one JSON object, or all as one array")
	return c
}

func (a *app) showClaim(ctx context.Context, repo string, issue int64) error {
	k, done, err := a.keeper(ctx, repo)
	if err != nil {
		return err
	}
	defer done()
	s, there, err := k.Look(ctx, issue)
	if err != nil {
		return err
	}
	if !there {
		return &claim.RefusedError{What: fmt.Sprintf("issue %d has no claim", issue), Next: "interlock claim show --all"}
	}
	if a.json {
		return text.JSON(a.env.Stdout, s)
	}
	next := ""
	if !s.Free() && !s.Dead {
		next = carry(fmt.Sprintf("interlock claim break %d --hash %s --reason 'why'", issue, s.Hash), a.args)
	}
	_, err = io.WriteString(a.env.Stdout, view.Claim(s, next))
	return err
}

func (a *app) showClaims(ctx context.Context, repo string) error {
	k, done, err := a.keeper(ctx, repo)
	if err != nil {
		return err
	}
	defer done()
	found, err := k.All(ctx)
	if err != nil {
		return err
	}
	if a.json {
		return text.List(a.env.Stdout, found)
	}
	if len(found) == 0 {
		_, err = fmt.Fprintln(a.env.Stderr, "no claims; an issue is claimed by: interlock run --help")
		return err
	}
	return view.Claims(a.env.Stdout, found)
}

func (a *app) claimBreak() *cobra.Command {
	var repo, hash, reason string
	c := a.command(cobra.Command{
		Use:   "break ISSUE --hash HASH --reason TEXT",
		Short: "give up a claim whose holder is gone for good",
		Long: `break gives up a claim of anybody, at once, on your word: use it when you know that its holder is
gone for good. It names the exact commit that claim show has printed, and does nothing when the
claim has moved since. The issue is told by one comment. Should the holder live after all, nothing
that it still does is pushed. A claim that a process of this machine holds is not broken: cancel it.`,
		Example: "  interlock claim break 7 --hash 0123456789abcdef0123456789abcdef01234567 --reason 'that machine was sold'",
		Args:    one("ISSUE", "interlock claim show --all"),
	}, func(ctx context.Context, args []string) error {
		n, err := number("issue", args[0])
		if err != nil {
			return err
		}
		switch show := fmt.Sprintf("interlock claim show %d", n); {
		case !git.ValidHash(hash):
			return &usageError{"--hash has to be the whole hash of the claim that you have looked at, 40 digits", show}
		case strings.TrimSpace(reason) == "" || len(reason) > 1000 || !utf8.ValidString(reason):
			return &usageError{"--reason has to say why, in at most 1000 bytes: the issue is told", show}
		}
		k, done, err := a.keeper(ctx, repo)
		if err != nil {
			return err
		}
		defer done()
		c, err := k.Break(ctx, n, hash, reason, a.author())
		if err != nil {
			return err
		}
		return a.print(c, fmt.Sprintf("the claim of issue %d is broken (generation %d); it can be worked again\n", n, c.Generation))
	})
	repoFlag(c, &repo)
	c.Flags().StringVar(&hash, "hash", "", "the claim's commit, as claim show prints it")
	c.Flags().StringVar(&reason, "reason", "", "why, for the issue and the record")
	a.jsonFlag(c, "print the released claim as one JSON object")
	return c
}
