/* Floatgate's order of operations (docs/spec/timing.md, section 3) for SSDsim: ssdsim.py puts this file into a copy of
   its flash.c. It changes who gets a free channel and nothing else, so what still differs has another cause. */

static int is_ready(struct chip_info *chip, int state, long long now)
{
    return chip->next_state == state && chip->next_state_predict_time <= now;
}

/* The page of the chip that was issued first, of those of the queue that are in this state. */
static struct sub_request *oldest(struct sub_request *queue, int chip, unsigned int state)
{
    struct sub_request *found = NULL;
    for (; queue != NULL; queue = queue->next_node)
        if (queue->location->chip == chip && queue->current_state == state)
            if (found == NULL || queue->issued < found->issued)
                found = queue;
    return found;
}

/* What the chip does next on its channel, and since when it has been asking for it: a chip takes its pages in the order
   of their issue, reads and writes alike. */
static struct sub_request *next_of(struct ssd_info *ssd, struct channel_info *bus, int number, long long *asked)
{
    struct chip_info *chip = &bus->chip_head[number];
    struct sub_request *read, *write;
    if (is_ready(chip, CHIP_DATA_TRANSFER, ssd->current_time)) {
        *asked = chip->next_state_predict_time;
        return oldest(bus->subs_r_head, number, SR_R_READ);
    }
    if (chip->current_state != CHIP_IDLE && !is_ready(chip, CHIP_IDLE, ssd->current_time))
        return NULL;
    read = oldest(bus->subs_r_head, number, SR_WAIT);
    write = oldest(bus->subs_w_head, number, SR_WAIT);
    if (read == NULL || (write != NULL && write->issued < read->issued))
        read = write;
    if (read != NULL) {
        *asked = read->begin_time;
        if (chip->current_state != CHIP_IDLE && chip->next_state_predict_time > *asked)
            *asked = chip->next_state_predict_time;
    }
    return read;
}

/* Gives a free channel to the chip that asked first; of those that asked together, to the page issued first. */
static void first_come(struct ssd_info *ssd, unsigned int channel)
{
    struct channel_info *bus = &ssd->channel_head[channel];
    struct sub_request *first = NULL, *page;
    long long since = 0, asked = 0;
    int number;
    for (number = 0; number < bus->chip; number++) {
        page = next_of(ssd, bus, number, &asked);
        if (page != NULL && (first == NULL || asked < since || (asked == since && page->issued < first->issued))) {
            first = page;
            since = asked;
        }
    }
    if (first == NULL)
        return;
    if (first->operation == WRITE) {
        first->current_time = ssd->current_time;
        first->current_state = SR_W_TRANSFER;
        first->next_state = SR_COMPLETE;
        static_write(ssd, channel, first->location->chip, first->location->die, first);
        delete_w_sub_request(ssd, channel, first);
    } else if (first->current_state == SR_WAIT) {
        go_one_step(ssd, first, NULL, SR_R_C_A_TRANSFER, NORMAL);
    } else {
        find_read_sub_request(ssd, channel, first->location->chip, first->location->die);
        go_one_step(ssd, first, NULL, SR_R_DATA_TRANSFER, NORMAL);
    }
}
