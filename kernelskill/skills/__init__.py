"""Skills: SKILL.md, library, application of steps."""
